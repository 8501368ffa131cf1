package alert

import (
	"maps"
	"math"
	"slices"

	"github.com/dmarcd/dmarcd"
)

const (
	// passed is the share of a sender's or key's mail that passed until now; halved is the
	// fraction of that share below which it counts as broken.
	passed, halved = 0.8, 0.5
	// minPassed and minPassedDays are the messages and days with mail that a comparison needs.
	minPassed, minPassedDays = 100, 5
	// neverPasses is the maximum share of passing mail of a foreign sender.
	neverPasses = 0.02
)

// broke reports whether mail that used to pass no longer does. usual is the median share that
// passes per day, which an ongoing incident does not change.
func (d *detector) broke(of series) (today dmarcd.MailPart, usual float64, broke bool) {
	today = of[d.day-d.first]
	observed := rate(today.Passes, today.Messages)
	if today.Messages < minSender || observed > passed*halved {
		return today, 0, false
	}
	var rates []float64
	var messages int64
	for _, part := range of[:d.day-d.first] {
		if part.Messages > 0 {
			rates = append(rates, rate(part.Passes, part.Messages))
			messages += part.Messages
		}
	}
	if messages < minPassed || len(rates) < minPassedDays {
		return today, 0, false
	}
	usual = median(rates)
	return today, usual, usual >= passed && observed <= halved*usual
}

// selectors detects DKIM keys whose signatures no longer verify.
func (d *detector) selectors() {
	for _, key := range slices.Sorted(maps.Keys(d.selectorsOf)) {
		if today, usual, broke := d.broke(d.selectorsOf[key]); broke {
			d.add(dmarcd.SelectorFailing, today, dmarcd.Measured{
				Messages: today.Messages, Observed: rate(today.Passes, today.Messages), Usual: usual,
			})
		}
	}
}

// own returns the mail of the owner's senders on a day, except some senders.
func (d *detector) own(mail *dmarcd.MailDay, without []string) (own dmarcd.MailPart) {
	own = dmarcd.MailPart{Messages: mail.Messages, Passes: mail.Passes}
	for _, s := range mail.Senders {
		if slices.Contains(without, s.Key) || d.class(s.Key) == dmarcd.ClassForwarder || d.foreignToday(s.Key) {
			own.Messages -= s.Messages
			own.Passes -= s.Passes
		}
	}
	return own
}

// foreignToday returns foreign for the examined day, cached for all compared days.
func (d *detector) foreignToday(key string) bool {
	if d.isForeign == nil {
		d.isForeign = make(map[string]bool)
	}
	is, known := d.isForeign[key]
	if !known {
		is = d.foreign(key, d.day)
		d.isForeign[key] = is
	}
	return is
}

// passRate finds that less of the owner's mail passes, not counting senders that are reported
// separately.
func (d *detector) passRate(failing []string) {
	const least, deviations = 0.1, 6
	own := d.own(d.mail, failing)
	if own.Messages < minMail {
		return
	}
	u, known := d.usualBefore(d.day, func(mail *dmarcd.MailDay) (float64, bool) {
		then := d.own(mail, failing)
		return rate(then.Passes, then.Messages), then.Messages >= minMail
	})
	observed := rate(own.Passes, own.Messages)
	chance := math.Sqrt(u.median * (1 - u.median) / float64(own.Messages))
	if !known || u.median-observed < max(least, deviations*u.spread, deviations*chance) {
		return
	}
	for _, earlier := range d.found {
		if earlier.Kind == dmarcd.SelectorFailing && own.Fails() <= int64(float64(earlier.Messages)*(1-earlier.Observed)*1.2)+own.Messages/20 {
			return // the key explains it
		}
	}
	d.add(dmarcd.PassRateDropped, dmarcd.MailPart{}, dmarcd.Measured{Messages: own.Messages, Observed: observed, Usual: u.median})
}

// volume finds much more mail of the owner than usual. Spoofed mail is reported separately.
func (d *detector) volume() {
	own := d.own(d.mail, nil)
	if own.Messages < minSpike {
		return
	}
	u, known := d.usualBefore(d.day, func(mail *dmarcd.MailDay) (float64, bool) { return float64(d.own(mail, nil).Messages), true })
	if known && u.burst(float64(own.Messages)) {
		d.add(dmarcd.VolumeSpike, dmarcd.MailPart{}, dmarcd.Measured{Messages: own.Messages, Observed: float64(own.Messages), Usual: u.median})
	}
}

// spoofing finds much more mail of foreign senders than usual, not counting the mail of failing
// senders.
func (d *detector) spoofing(failing []string) {
	spoofed := func(mail *dmarcd.MailDay) (n int64) {
		for _, s := range mail.Senders {
			if d.foreignToday(s.Key) && !slices.Contains(failing, s.Key) {
				n += s.Fails()
			}
		}
		return n
	}
	today := spoofed(d.mail)
	if today < minSpoofed {
		return
	}
	u, known := d.usualBefore(d.day, func(mail *dmarcd.MailDay) (float64, bool) { return float64(spoofed(mail)), true })
	if known && u.burst(float64(today)) {
		d.add(dmarcd.SpoofingBurst, dmarcd.MailPart{}, dmarcd.Measured{Messages: today, Observed: float64(today), Usual: u.median})
	}
}

// unverified finds that much of the mail is known only from reports whose reporter is not
// verified.
func (d *detector) unverified() {
	const much, little = 0.5, 0.1
	observed := rate(d.mail.Unverified, d.mail.Messages)
	before := d.at(d.day - 1) // the DNS of a reporter may fail for a day
	if d.mail.Unverified < minMail || observed < much || before == nil || rate(before.Unverified, before.Messages) < much {
		return
	}
	u, known := d.usualBefore(d.day, func(mail *dmarcd.MailDay) (float64, bool) {
		return rate(mail.Unverified, mail.Messages), mail.Messages > 0
	})
	if known && u.median <= little {
		d.add(dmarcd.ReportsUnverified, dmarcd.MailPart{}, dmarcd.Measured{Messages: d.mail.Unverified, Observed: observed, Usual: u.median})
	}
}

// sessions detects that many TLS sessions fail.
func (d *detector) sessions() {
	const least, deviations = 0.1, 6
	if d.mail.Sessions < minSessions {
		return
	}
	fails := func(mail *dmarcd.MailDay) (float64, bool) {
		return 1 - rate(mail.Secure, mail.Sessions), mail.Sessions > 0
	}
	observed, _ := fails(d.mail)
	u, known := d.usualBefore(d.day, fails)
	if known && observed-u.median >= max(least, deviations*u.spread) {
		d.add(dmarcd.TLSFailing, dmarcd.MailPart{}, dmarcd.Measured{Messages: d.mail.Sessions, Observed: observed, Usual: u.median})
	}
}

const (
	// minPresence is the share of days with reports from which a day without any is remarkable;
	// minReceiver is the same for one receiver.
	minPresence, minReceiver = 0.5, 0.8
	// grace is the number of days that reports may be missing beyond twice the longest gap.
	grace = 2
)

// silences finds that no more reports arrive, from all receivers or from one. The day of the
// detection is the last one with a report.
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

// silence reports whether something that was present on most days has stopped, its last day,
// and whether that is recent: an older silence was reported before. The silence must exceed
// twice the longest earlier gap plus grace days, because mail that pauses at weekends may pause
// for a week. Days without any report are ignored if later days have some: then all receivers
// were silent, and the reports of some may be late.
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

// Rejected finds days with many unreadable reports. counts is by day.
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
