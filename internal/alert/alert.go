// Package alert detects what the owner of a domain should know about its mail: mail that
// stopped passing DMARC, new senders, bursts of volume or spoofing, and reports that no
// longer arrive. It compares each day with the same weekday of the weeks before, by median
// and median absolute deviation, so that neither weekends nor a single odd day matter.
//
// All functions are pure. A day may be examined repeatedly while its reports arrive: Merge
// returns each incident once. docs/alerts.md explains every threshold.
package alert

import (
	"math"
	"slices"

	"github.com/dmarcd/dmarcd"
)

const (
	// Days is the maximum number of days of history that a detection uses.
	Days = 63
	// detected is the number of days examined, including today: reports arrive late.
	detected = 8
	// weeks is the number of earlier days of the same weekday that are compared; minWeeks of
	// them must have mail.
	weeks, minWeeks = 8, 3
	// recent is the number of days before a day that define what is usual for a sender.
	recent = 28
	// minHistory is the minimum number of earlier days with mail.
	minHistory = 14
	// episode is the number of days without a detection after which the next one is a new
	// incident.
	episode = 7
)

// Minimum amounts for a detection, in messages per day.
const (
	minMail     = 100 // of a domain
	minSender   = 50  // of a sender or key that fails
	minNew      = 50  // of a new sender
	minSpike    = 500
	minSpoofed  = 200
	minSessions = 20
	minRejected = 5 // unreadable reports
)

// Detect returns the detections of the last days of a domain. today may have no reports yet.
func Detect(d dmarcd.DomainMail, today dmarcd.Day) []dmarcd.Detection {
	h := newHistory(d, today)
	var found []dmarcd.Detection
	for day := today - detected + 1; day <= today; day++ {
		if h.at(day) == nil || h.daysBefore(day, Days) < minHistory {
			continue
		}
		of := &detector{history: h, day: day, mail: h.at(day)}
		of.detect()
		found = append(found, of.found...)
	}
	return append(found, h.silences()...)
}

// detector collects the detections of one day.
type detector struct {
	*history
	day   dmarcd.Day
	mail  *dmarcd.MailDay
	found []dmarcd.Detection
	// isForeign caches foreign for the day, and classes caches class.
	isForeign map[string]bool
	classes   map[string]dmarcd.Class
}

func (d *detector) detect() {
	d.selectors()
	failing := d.senders()
	d.passRate(failing)
	d.volume()
	d.spoofing(failing)
	d.newSenders()
	d.unverified()
	d.sessions()
}

func (d *detector) add(kind dmarcd.EventKind, subject dmarcd.MailPart, measured dmarcd.Measured) {
	detection := dmarcd.Detection{Kind: kind, Domain: d.domain.ID, Subject: subject.Key, Name: subject.Name, Day: d.day, Measured: measured}
	if isSender(kind) {
		detection.Class = d.class(subject.Key)
	}
	d.found = append(d.found, detection)
}

// isSender reports whether events of the kind are about senders.
func isSender(kind dmarcd.EventKind) bool {
	return kind == dmarcd.SenderNew || kind == dmarcd.SenderFailing
}

// Merge returns the detections that belong to no known incident, each once, and the known
// incidents that continue, with their new last days.
func Merge(known []dmarcd.Incident, found []dmarcd.Detection) (fresh []dmarcd.Detection, extended []dmarcd.Incident) {
	known = slices.Clone(known)
	changed := make(map[int]bool)
	stored := len(known) // later ones are fresh
	for _, d := range found {
		at := slices.IndexFunc(known, func(i dmarcd.Incident) bool { return belongs(d, i) })
		if at < 0 {
			known = append(known, dmarcd.Incident{Kind: d.Kind, Domain: d.Domain, Subject: d.Subject, First: d.Day, Last: d.Day})
			fresh = append(fresh, d)
			continue
		}
		if i := &known[at]; d.Day > i.Last {
			i.Last = d.Day
			changed[at] = at < stored
		}
	}
	for at := range known {
		if changed[at] {
			extended = append(extended, known[at])
		}
	}
	return fresh, extended
}

// belongs reports whether a detection is part of an incident. An incident of a whole network or
// service includes its parts.
func belongs(d dmarcd.Detection, i dmarcd.Incident) bool {
	same := d.Subject == i.Subject || isSender(d.Kind) && i.Subject != "" && dmarcd.SenderBase(d.Subject) == i.Subject
	return same && d.Kind == i.Kind && d.Domain == i.Domain && d.Day >= i.First-episode && d.Day <= i.Last+episode
}

// history is the mail of a domain by day, and its parts by key.
type history struct {
	domain *dmarcd.DomainMail
	today  dmarcd.Day
	first  dmarcd.Day // of days
	days   []*dmarcd.MailDay
	// sendersOf, selectorsOf and receiversOf have an element for each day, zero for days
	// without mail.
	sendersOf, selectorsOf, receiversOf map[string]series
	// divided has the keys of sendersOf.
	divided map[string]divided
}

// series is a part of the mail by day.
type series []dmarcd.MailPart

func newHistory(d dmarcd.DomainMail, today dmarcd.Day) *history {
	h := &history{domain: &d, today: today, first: today - Days + 1, days: make([]*dmarcd.MailDay, Days)}
	h.sendersOf, h.selectorsOf, h.receiversOf = make(map[string]series), make(map[string]series), make(map[string]series)
	for i := range d.Days {
		day := &d.Days[i]
		at := int(day.Day - h.first)
		if at < 0 || at >= Days {
			continue
		}
		h.days[at] = day
		for _, of := range []struct {
			parts []dmarcd.MailPart
			to    map[string]series
		}{{day.Senders, h.sendersOf}, {day.Selectors, h.selectorsOf}, {day.Receivers, h.receiversOf}} {
			for _, part := range of.parts {
				if of.to[part.Key] == nil {
					of.to[part.Key] = make(series, Days)
				}
				of.to[part.Key][at] = part
			}
		}
	}
	h.divided = make(map[string]divided, len(h.sendersOf))
	for key := range h.sendersOf {
		h.divided[key] = divide(key)
	}
	return h
}

// at returns the mail of a day, nil if there is none.
func (h *history) at(day dmarcd.Day) *dmarcd.MailDay {
	if at := int(day - h.first); at >= 0 && at < len(h.days) {
		return h.days[at]
	}
	return nil
}

// daysBefore returns how many of the n days before a day have mail.
func (h *history) daysBefore(day dmarcd.Day, n int) (with int) {
	for d := day - 1; d >= max(day-dmarcd.Day(n), h.first); d-- { //nolint:gosec // n is small
		if h.at(d) != nil {
			with++
		}
	}
	return with
}

// sum is a total over several days.
type sum struct {
	messages, passes int64
	days             int
}

// rate returns the share that passes, 0 without mail.
func (s sum) rate() float64 { return rate(s.passes, s.messages) }

func rate(part, of int64) float64 {
	if of == 0 {
		return 0
	}
	return float64(part) / float64(of)
}

// before sums the n days before a day.
func (h *history) before(of series, day dmarcd.Day, n int) (s sum) {
	to := int(day - h.first)
	for at := max(to-n, 0); at < to && at < len(of); at++ {
		if of[at].Messages > 0 {
			s.messages += of[at].Messages
			s.passes += of[at].Passes
			s.days++
		}
	}
	return s
}

// usual describes the normal values of a figure.
type usual struct {
	median float64
	// spread is the median absolute deviation, scaled to the standard deviation of normal data.
	spread float64
	// most is the maximum of the recent days, of any weekday.
	most float64
}

// usualBefore returns the usual value of a figure on the same weekday in the weeks before a
// day, and whether there are enough days. It skips days for which value returns false.
func (h *history) usualBefore(day dmarcd.Day, value func(*dmarcd.MailDay) (float64, bool)) (u usual, known bool) {
	var values []float64
	for week := 1; week <= weeks; week++ {
		if mail := h.at(day - dmarcd.Day(7*week)); mail != nil {
			if v, ok := value(mail); ok {
				values = append(values, v)
			}
		}
	}
	if len(values) < minWeeks {
		return u, false
	}
	u.median = median(values)
	for i, v := range values {
		values[i] = math.Abs(v - u.median)
	}
	u.spread = 1.4826 * median(values)
	for d := day - recent; d < day; d++ {
		if mail := h.at(d); mail != nil {
			if v, ok := value(mail); ok {
				u.most = max(u.most, v)
			}
		}
	}
	return u, true
}

// median returns the median of values, which it sorts.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	if n%2 == 1 {
		return values[n/2]
	}
	return (values[n/2-1] + values[n/2]) / 2
}

// burst reports whether an amount is far above the usual: several times as much, beyond chance,
// and more than on any recent day.
func (u usual) burst(amount float64) bool {
	const times, deviations, aboveMost = 3, 6, 1.5
	chance := max(u.spread, math.Sqrt(u.median))
	return amount >= times*u.median && amount > u.median+deviations*chance && amount >= aboveMost*u.most
}
