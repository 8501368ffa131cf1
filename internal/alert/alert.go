// Package alert detects what the owner of a domain should know about its mail: mail that
// stopped passing DMARC, new senders, bursts of volume or spoofing, and reports that no
// longer arrive. It compares each day with the same weekday of the weeks before, by median
// and median absolute deviation, so that neither weekends nor a single odd day matter.
//
// All is pure. A day may be examined any number of times while its reports arrive: Merge returns each
// incident once. docs/alerts.md explains every threshold.
package alert

import (
	"slices"

	"github.com/dmarcd/dmarcd"
)

const (
	// Days is how many days of history a detection needs at most.
	Days = 63
	// detected is how many days are examined, the current one included: reports arrive late.
	detected = 8
	// weeks is how many days of the same weekday are compared, minWeeks how many of these
	// must have mail.
	weeks, minWeeks = 8, 3
	// recent is how many days before a day tell what is usual for a sender.
	recent = 28
	// minHistory is how many days with mail there must be before a day.
	minHistory = 14
	// episode is after how many days without a detection the next one is a new incident.
	episode = 7
)

// What is too little to judge, in messages a day.
const (
	minMail     = 100 // of a domain
	minSender   = 50  // of a sender or key that fails
	minNew      = 50  // of a new sender
	minSpike    = 500
	minSpoofed  = 200
	minSessions = 20
	minRejected = 5 // unreadable reports
)

// Detect returns what is remarkable about the last days of a domain. today is the current
// day, of which there may be no reports yet.
func Detect(d dmarcd.DomainMail, today dmarcd.Day) []dmarcd.Detection {
	h := newHistory(d, today)
	var found []dmarcd.Detection
	for day := today - detected + 1; day <= today; day++ {
		if h.at(day) == nil || h.daysBefore(day, Days) < minHistory {
			continue
		}
		j := &judgement{history: h, day: day, mail: h.at(day)}
		j.detect()
		found = append(found, j.found...)
	}
	return append(found, h.silences()...)
}

// judgement is what is found on one day.
type judgement struct {
	*history
	day   dmarcd.Day
	mail  *dmarcd.MailDay
	found []dmarcd.Detection
	// isForeign is what foreign returns on that day, and classes what class does.
	isForeign map[string]bool
	classes   map[string]dmarcd.Class
}

func (j *judgement) detect() {
	j.selectors()
	failing := j.senders()
	j.passRate(failing)
	j.volume()
	j.spoofing(failing)
	j.newSenders()
	j.unverified()
	j.sessions()
}

func (j *judgement) add(kind dmarcd.EventKind, subject dmarcd.MailPart, measured dmarcd.Measured) {
	d := dmarcd.Detection{Kind: kind, Domain: j.domain.ID, Subject: subject.Key, Name: subject.Name, Day: j.day, Measured: measured}
	if isSender(kind) {
		d.Class = j.class(subject.Key)
	}
	j.found = append(j.found, d)
}

// isSender reports whether events of a kind are about senders.
func isSender(kind dmarcd.EventKind) bool {
	return kind == dmarcd.SenderNew || kind == dmarcd.SenderFailing
}

// Merge returns the detections that belong to none of the known incidents, each once, and the
// known incidents that go on, with their new last days.
func Merge(known []dmarcd.Incident, found []dmarcd.Detection) (fresh []dmarcd.Detection, extended []dmarcd.Incident) {
	known = slices.Clone(known)
	changed := make(map[int]bool)
	stored := len(known) // those behind it are fresh
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

// belongs reports whether a detection is part of an incident. One about a whole network or service
// is about its parts, too.
func belongs(d dmarcd.Detection, i dmarcd.Incident) bool {
	same := d.Subject == i.Subject || isSender(d.Kind) && i.Subject != "" && dmarcd.SenderBase(d.Subject) == i.Subject
	return same && d.Kind == i.Kind && d.Domain == i.Domain && d.Day >= i.First-episode && d.Day <= i.Last+episode
}
