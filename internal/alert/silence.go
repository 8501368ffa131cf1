package alert

import (
	"maps"
	"slices"

	"github.com/dmarcd/dmarcd"
)

const (
	// minPresence is the part of days with reports, so that days without are remarkable,
	// and minReceiver the same for one receiver.
	minPresence, minReceiver = 0.5, 0.8
	// grace is how many days beyond twice the longest gap so far reports may be missing.
	grace = 2
)

// silences finds that reports no longer arrive: at all, or from one receiver. The day of
// such a detection is the last one with a report.
func (h *history) silences() []dmarcd.Detection {
	all := make([]bool, Days)
	for at, mail := range h.days {
		all[at] = mail != nil && mail.Messages > 0
	}
	if last, silent, recent := silence(all, all, minPresence); silent {
		if !recent {
			return nil
		}
		return []dmarcd.Detection{h.stopped(dmarcd.MailPart{}, last)}
	}
	var found []dmarcd.Detection
	for _, key := range slices.Sorted(maps.Keys(h.receiversOf)) {
		of := h.receiversOf[key]
		present := make([]bool, Days)
		for at := range of {
			present[at] = of[at].Messages > 0
		}
		if last, silent, recent := silence(present, all, minReceiver); silent && recent {
			found = append(found, h.stopped(of[last], last))
		}
	}
	return found
}

func (h *history) stopped(of dmarcd.MailPart, last int) dmarcd.Detection {
	day := h.first + dmarcd.Day(last) //nolint:gosec // at most Days
	return dmarcd.Detection{
		Kind: dmarcd.ReportsStopped, Domain: h.domain.ID, Subject: of.Key, Name: of.Name, Day: day,
		Measured: dmarcd.Measured{Observed: float64(h.today - day), Usual: 1},
	}
}

// silence reports whether what was present on most days no longer is, the last day of it, and
// whether the silence is recent: one that began long ago was reported then. It has to be
// longer than twice the longest gap before it, and grace days: mail that pauses at weekends
// may pause for a week. Days without any reports do not count if there are later ones: then
// all receivers were silent, and reports of some may arrive later than those of others.
func silence(present, all []bool, least float64) (last int, silent, recent bool) {
	last = -1
	first, longest, days := -1, 0, 0
	for at, is := range present {
		if !is {
			continue
		}
		if last >= 0 {
			longest = max(longest, at-last)
		} else {
			first = at
		}
		last = at
		days++
	}
	if days < minHistory || float64(days) < least*float64(last-first+1) {
		return last, false, false
	}
	missing, allowed := len(present)-1-last, 2*longest+grace
	for at, gap := last+1, 0; at < len(all); at++ {
		if gap++; all[at] {
			missing -= gap - 1
			gap = 0
		}
	}
	return last, missing >= allowed, missing <= allowed+2*episode
}

// Rejected finds days with many reports that could not be read. counts are by day.
func Rejected(counts map[dmarcd.Day]int64, today dmarcd.Day) []dmarcd.Detection {
	var found []dmarcd.Detection
	for day := today - detected + 1; day <= today; day++ {
		n := counts[day]
		if n < minRejected {
			continue
		}
		var values []float64
		var most float64
		for d := day - recent; d < day; d++ {
			values = append(values, float64(counts[d]))
			most = max(most, float64(counts[d]))
		}
		if u := (usual{median: median(values), most: most}); u.burst(float64(n)) {
			found = append(found, dmarcd.Detection{
				Kind: dmarcd.ReportsUnreadable, Day: day, Measured: dmarcd.Measured{Messages: n, Observed: float64(n), Usual: u.median},
			})
		}
	}
	return found
}
