package alert

import (
	"maps"
	"math"
	"slices"

	"github.com/dmarcd/dmarcd"
)

const (
	// passed is the part of a sender's or key's mail that passed so far, and halved what
	// part of that is left when it fails.
	passed, halved = 0.8, 0.5
	// minPassed and minPassedDays are how much mail of it there must have been.
	minPassed, minPassedDays = 100, 5
	// neverPasses is the part of a sender's mail that passes at most where it is not the
	// owner's.
	neverPasses = 0.02
)

// broke reports whether a part of the mail passed so far and no longer does. usual is the
// median of the part that passes a day: it holds while an incident lasts.
func (j *judgement) broke(of series) (today dmarcd.MailPart, usual float64, broke bool) {
	today = of[j.day-j.first]
	observed := rate(today.Passes, today.Messages)
	if today.Messages < minSender || observed > passed*halved {
		return today, 0, false
	}
	var rates []float64
	var messages int64
	for _, part := range of[:j.day-j.first] {
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

// selectors finds DKIM keys whose signatures no longer verify.
func (j *judgement) selectors() {
	for _, key := range slices.Sorted(maps.Keys(j.selectorsOf)) {
		if today, usual, broke := j.broke(j.selectorsOf[key]); broke {
			j.add(dmarcd.SelectorFailing, today, dmarcd.Measured{
				Messages: today.Messages, Observed: rate(today.Passes, today.Messages), Usual: usual,
			})
		}
	}
}

// own returns the mail of a day of the owner's senders, without some of them.
func (j *judgement) own(mail *dmarcd.MailDay, without []string) (own dmarcd.MailPart) {
	own = dmarcd.MailPart{Messages: mail.Messages, Passes: mail.Passes}
	for _, s := range mail.Senders {
		if slices.Contains(without, s.Key) || j.class(s.Key) == dmarcd.ClassForwarder || j.foreignToday(s.Key) {
			own.Messages -= s.Messages
			own.Passes -= s.Passes
		}
	}
	return own
}

// foreignToday is foreign on the day that is judged, remembered for all days compared.
func (j *judgement) foreignToday(key string) bool {
	if j.isForeign == nil {
		j.isForeign = make(map[string]bool)
	}
	is, known := j.isForeign[key]
	if !known {
		is = j.foreign(key, j.day)
		j.isForeign[key] = is
	}
	return is
}

// passRate finds that less of the owner's mail passes, beyond the senders that are reported
// on their own.
func (j *judgement) passRate(failing []string) {
	const least, deviations = 0.1, 6
	own := j.own(j.mail, failing)
	if own.Messages < minMail {
		return
	}
	u, known := j.usualBefore(j.day, func(mail *dmarcd.MailDay) (float64, bool) {
		then := j.own(mail, failing)
		return rate(then.Passes, then.Messages), then.Messages >= minMail
	})
	observed := rate(own.Passes, own.Messages)
	chance := math.Sqrt(u.median * (1 - u.median) / float64(own.Messages))
	if !known || u.median-observed < max(least, deviations*u.spread, deviations*chance) {
		return
	}
	for _, d := range j.found {
		if d.Kind == dmarcd.SelectorFailing && own.Fails() <= int64(float64(d.Messages)*(1-d.Observed)*1.2)+own.Messages/20 {
			return // the key explains it
		}
	}
	j.add(dmarcd.PassRateDropped, dmarcd.MailPart{}, dmarcd.Measured{Messages: own.Messages, Observed: observed, Usual: u.median})
}

// volume finds much more mail of the owner than usual. Spoofed mail is reported on its own.
func (j *judgement) volume() {
	own := j.own(j.mail, nil)
	if own.Messages < minSpike {
		return
	}
	u, known := j.usualBefore(j.day, func(mail *dmarcd.MailDay) (float64, bool) { return float64(j.own(mail, nil).Messages), true })
	if known && u.burst(float64(own.Messages)) {
		j.add(dmarcd.VolumeSpike, dmarcd.MailPart{}, dmarcd.Measured{Messages: own.Messages, Observed: float64(own.Messages), Usual: u.median})
	}
}

// spoofing finds much more mail of foreign senders than usual, beyond the mail of failing ones.
func (j *judgement) spoofing(failing []string) {
	spoofed := func(mail *dmarcd.MailDay) (n int64) {
		for _, s := range mail.Senders {
			if j.foreignToday(s.Key) && !slices.Contains(failing, s.Key) {
				n += s.Fails()
			}
		}
		return n
	}
	today := spoofed(j.mail)
	if today < minSpoofed {
		return
	}
	u, known := j.usualBefore(j.day, func(mail *dmarcd.MailDay) (float64, bool) { return float64(spoofed(mail)), true })
	if known && u.burst(float64(today)) {
		j.add(dmarcd.SpoofingBurst, dmarcd.MailPart{}, dmarcd.Measured{Messages: today, Observed: float64(today), Usual: u.median})
	}
}

// unverified finds that much of the mail is known from reports alone whose sender is not
// verified.
func (j *judgement) unverified() {
	const much, little = 0.5, 0.1
	observed := rate(j.mail.Unverified, j.mail.Messages)
	before := j.at(j.day - 1) // the DNS of a reporter may fail for a day
	if j.mail.Unverified < minMail || observed < much || before == nil || rate(before.Unverified, before.Messages) < much {
		return
	}
	u, known := j.usualBefore(j.day, func(mail *dmarcd.MailDay) (float64, bool) {
		return rate(mail.Unverified, mail.Messages), mail.Messages > 0
	})
	if known && u.median <= little {
		j.add(dmarcd.ReportsUnverified, dmarcd.MailPart{}, dmarcd.Measured{Messages: j.mail.Unverified, Observed: observed, Usual: u.median})
	}
}

// sessions finds that receivers fail to connect securely.
func (j *judgement) sessions() {
	const least, deviations = 0.1, 6
	if j.mail.Sessions < minSessions {
		return
	}
	fails := func(mail *dmarcd.MailDay) (float64, bool) {
		return 1 - rate(mail.Secure, mail.Sessions), mail.Sessions > 0
	}
	observed, _ := fails(j.mail)
	u, known := j.usualBefore(j.day, fails)
	if known && observed-u.median >= max(least, deviations*u.spread) {
		j.add(dmarcd.TLSFailing, dmarcd.MailPart{}, dmarcd.Measured{Messages: j.mail.Sessions, Observed: observed, Usual: u.median})
	}
}
