package demo

import (
	"math"
	"math/rand/v2"
	"time"
)

// stream is mail of one sort that is sent as a domain.
type stream struct {
	mailNetwork *mailNetwork
	// perDay is how many messages there are on a full day, to receivers that report.
	perDay float64
	rhythm rhythm
	// since and until are days before the present; 0 means the start and the end of the
	// scenario.
	since, until int

	from     string // the author domain, "" for the domain itself
	envelope string // the domain of the envelope sender, "" for the domain itself
	selector string // of the signature as the domain itself, "" where there is none
	// signs means that the mailNetwork also signs with its own domain.
	signs bool
	// forwarded means that the mailNetwork forwards mail of others, and list that it
	// modifies it.
	forwarded, list bool
}

// flows reports whether the stream flows on a day.
func (s *stream) flows(ago int) bool {
	return (s.since == 0 || ago <= s.since) && (s.until == 0 || ago > s.until)
}

// rhythm is how much of a stream's full volume flows on a day: a number from 0 to
// about 1. The dice are those of the stream and the week, the same on all its days.
type rhythm func(at time.Time, dice *rand.Rand) float64

// office is the rhythm of people at work.
func office(at time.Time, _ *rand.Rand) float64 {
	full := 1.0
	if month, date := at.Month(), at.Day(); month == time.December && date >= 24 || month == time.January && date == 1 {
		full = 0.3
	}
	switch at.Weekday() {
	case time.Saturday:
		return 0.22 * full
	case time.Sunday:
		return 0.15 * full
	default:
		return full
	}
}

// steady is the rhythm of machines, and of customers who buy on weekends too.
func steady(at time.Time, _ *rand.Rand) float64 {
	if weekday := at.Weekday(); weekday == time.Saturday || weekday == time.Sunday {
		return 0.8
	}
	return 1
}

// newsletter is sent on Tuesdays, with a reminder on Thursdays to those who did not
// read it.
func newsletter(at time.Time, _ *rand.Rand) float64 {
	switch at.Weekday() {
	case time.Tuesday:
		return 1
	case time.Thursday:
		return 0.25
	default:
		return 0
	}
}

// waves is the rhythm of spoofed mail: little most of the time, much in some weeks.
func waves(at time.Time, dice *rand.Rand) float64 {
	high, from := dice.Float64(), dice.IntN(4)
	if since := int(at.Weekday()) - from; high > 0.7 && since >= 0 && since < 4 {
		return high * (1 - 0.2*float64(since))
	}
	return 0.06
}

// volume returns how many messages of a stream are sent on a day.
func (s *Scenario) volume(d *domain, index, ago int) float64 {
	stream := &d.streams[index]
	if !stream.flows(ago) {
		return 0
	}
	at := s.dayBefore(ago)
	week := int(at.Unix() / int64(7*day/time.Second))
	full := stream.rhythm(at, random(s.options.Seed, d.name, week*len(d.streams)+index))
	// Business grows by a fifth over the year.
	growth := 1.2 - 0.2*float64(ago)/daysOfScenario
	return stream.perDay * full * growth
}

// poisson returns a random count with the mean.
func poisson(dice *rand.Rand, mean float64) int {
	const large = 40
	if mean > large {
		return max(0, int(math.Round(mean+math.Sqrt(mean)*dice.NormFloat64())))
	}
	limit, product := math.Exp(-mean), dice.Float64()
	count := 0
	for product > limit {
		product *= dice.Float64()
		count++
	}
	return count
}
