package alert

import (
	"math"
	"slices"

	"github.com/dmarcd/dmarcd"
)

// history is the mail of a domain by day, and the parts of it by key.
type history struct {
	domain *dmarcd.DomainMail
	today  dmarcd.Day
	first  dmarcd.Day // that of days
	days   []*dmarcd.MailDay
	// sendersOf, selectorsOf and receiversOf have a part for each day, without messages where
	// there is none.
	sendersOf, selectorsOf, receiversOf map[string]series
	// divided are the keys of sendersOf.
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

// at returns the mail of a day, nil where there is none.
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

// sum is a part of the mail over the recent days before a day.
type sum struct {
	messages, passes int64
	days             int
}

// rate returns the part that passes, 0 without mail.
func (s sum) rate() float64 { return rate(s.passes, s.messages) }

func rate(part, of int64) float64 {
	if of == 0 {
		return 0
	}
	return float64(part) / float64(of)
}

// before adds up the n days before a day.
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

// usual is what a figure normally is.
type usual struct {
	median float64
	// spread is the median absolute deviation, scaled so that it is the standard deviation
	// of normal data.
	spread float64
	// most is the greatest value of the recent days, of any weekday.
	most float64
}

// usualBefore returns what a figure is on the same weekday of the weeks before a day, and
// whether there are enough of them. Days of which value returns false are left out.
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

// burst reports whether an amount is far above what is usual: several times as much, more
// than chance explains, and more than on any recent day.
func (u usual) burst(amount float64) bool {
	const times, deviations, aboveMost = 3, 6, 1.5
	chance := max(u.spread, math.Sqrt(u.median))
	return amount >= times*u.median && amount > u.median+deviations*chance && amount >= aboveMost*u.most
}
