package alert

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// Parts of networks and services, as in the keys of senders; see dmarcd.ParseSenderKey. The aligned
// mail of a service, and a sender that is not divided, have none.
const (
	partYours      = "yours"
	partForwarding = "forwarding"
	partOthers     = "others"
)

// divided is the key of a sender, divided into that of its network or service, "" for an address
// that the team classified, and the part of it.
type divided struct{ base, part string }

func divide(key string) divided {
	base := dmarcd.SenderBase(key)
	if base == "" {
		return divided{"", ""}
	}
	return divided{base, strings.TrimPrefix(key[len(base):], ":")}
}

// isOwn reports whether it is what the owner's mail belongs to.
func (d divided) isOwn() bool { return d.part == "" || d.part == partYours }

// isService reports whether it is a known service, and not a network, of which the keys are the
// numbers of autonomous systems, such as AS64500, or "-" if they are not known.
func (d divided) isService() bool {
	_, isSystem := dmarcd.SystemNumber(d.base)
	return d.base != "" && d.base != "-" && !isSystem
}

// class returns the class of a sender: that of the team, or the one that it had last. It is "" for
// what is no sender.
func (j *judgement) class(key string) dmarcd.Class {
	classes := j.domain.Classes
	if class := cmp.Or(classes[key], classes[j.divided[key].base]); class != "" {
		return class
	}
	if known, ok := j.classes[key]; ok {
		return known
	}
	var class dmarcd.Class
	for at := int(j.day - j.first); at >= 0 && class == "" && j.sendersOf[key] != nil; at-- {
		class = j.sendersOf[key][at].Class
	}
	if j.classes == nil {
		j.classes = make(map[string]dmarcd.Class)
	}
	j.classes[key] = class
	return class
}

// senders finds senders of the owner whose mail no longer passes, and returns the keys of the mail
// of all such senders. What a broken key explains is not reported again.
func (j *judgement) senders() (failing []string) {
	var explained int64
	for _, d := range j.found {
		explained += int64(float64(d.Messages) * (1 - d.Observed))
	}
	for _, key := range slices.Sorted(maps.Keys(j.sendersOf)) {
		if class := j.class(key); class == dmarcd.ClassSpoofing || class == dmarcd.ClassForwarder {
			continue
		}
		today, usual, broke := j.broke(j.sendersOf[key])
		keys := []string{key}
		if !broke {
			today, keys, usual, broke = j.left(key)
		}
		if !broke {
			continue
		}
		failing = append(failing, keys...)
		if today.Fails() <= explained+explained/5 {
			continue
		}
		j.add(dmarcd.SenderFailing, today, dmarcd.Measured{
			Messages: today.Messages, Observed: rate(today.Passes, today.Messages), Usual: usual,
		})
	}
	return failing
}

// left is broke for the mail of an owner's sender together with that of the same network or service
// that authenticates as no domain or as another one. Mail that no longer passes may belong there:
// then less of the sender's own passes, too.
func (j *judgement) left(key string) (today dmarcd.MailPart, keys []string, usual float64, broke bool) {
	of := j.divided[key]
	if of.base == "" || !of.isOwn() {
		return today, nil, 0, false
	}
	all, name := make(series, Days), ""
	var passes []float64
	for at, part := range j.sendersOf[key] {
		name = cmp.Or(part.Name, name)
		if at < int(j.day-j.first) && part.Messages > 0 {
			passes = append(passes, float64(part.Passes))
		}
	}
	for other, parts := range j.sendersOf {
		with := j.divided[other]
		if with.base != of.base || with.part == partForwarding || with.part == partOthers {
			continue
		}
		keys = append(keys, other)
		for at := range parts {
			all[at].Messages += parts[at].Messages
			all[at].Passes += parts[at].Passes
		}
	}
	if len(keys) < 2 || len(passes) == 0 {
		return today, nil, 0, false
	}
	today, usual, broke = j.broke(all)
	today.Key, today.Name = key, name
	return today, keys, usual, broke && float64(today.Passes) <= halved*median(passes)
}

// foreign reports whether a sender is not the owner's as far as the days up to one tell: it spoofs
// or, where its class is not known, nothing of its mail passes, and it is no service that the owner
// may use.
func (j *judgement) foreign(key string, day dmarcd.Day) bool {
	switch class := j.class(key); {
	case class == dmarcd.ClassSpoofing:
		return true
	case class != "" && class != dmarcd.ClassUnknown:
		return false
	}
	if of := j.divided[key]; of.isService() && of.part != partOthers {
		return false
	}
	of := j.before(j.sendersOf[key], day+1, Days)
	return of.rate() <= neverPasses
}

// newSenders finds senders that have never sent before: services, and networks whose mail
// passes. A network whose mail fails is a matter of spoofing, and a forwarder of its users.
func (j *judgement) newSenders() {
	u, known := j.usualBefore(j.day, func(mail *dmarcd.MailDay) (float64, bool) { return float64(mail.Messages), true })
	if !known {
		return
	}
	least := max(minNew, int64(u.median/100))
	for _, s := range j.mail.Senders {
		if s.Messages < least || j.class(s.Key) == dmarcd.ClassForwarder || j.foreignToday(s.Key) || s.Key == unknownSender || j.sentBefore(s.Key) {
			continue
		}
		j.add(dmarcd.SenderNew, s, dmarcd.Measured{Messages: s.Messages, Observed: rate(s.Passes, s.Messages)})
	}
}

// unknownSender is the key of mail whose network is not known.
const unknownSender = "-"

// sentBefore reports whether a sender is not new on the day. Addresses of networks keep their first
// day when they are attributed to another part of it. A service shares its addresses, so that it is
// not new if any other part of its mail than the forwarded one is known.
func (j *judgement) sentBefore(key string) bool {
	of := j.divided[key]
	same := func(other string) bool {
		with := divide(other)
		return other == key || of.isService() && with.base == of.base && with.part != partForwarding
	}
	for other, first := range j.domain.First {
		if first <= j.day-detected && same(other) {
			return true
		}
	}
	for other, parts := range j.sendersOf {
		if same(other) && j.before(parts, j.day-episode, Days).days > 0 {
			return true
		}
	}
	return false
}
