package alert

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// Parts of networks and services, as in sender keys; see dmarcd.ParseSenderKey. The part is ""
// for the aligned mail of a service, and for a sender without parts.
const (
	partYours      = "yours"
	partForwarding = "forwarding"
	partOthers     = "others"
)

// divided is a sender key, split into base and part. base is the key of the network or service,
// "" for an address that the team classified.
type divided struct{ base, part string }

func divide(key string) divided {
	base := dmarcd.SenderBase(key)
	if base == "" {
		return divided{"", ""}
	}
	return divided{base, strings.TrimPrefix(key[len(base):], ":")}
}

// isOwn reports whether the sender can have the owner's own mail.
func (d divided) isOwn() bool { return d.part == "" || d.part == partYours }

// isService reports whether the sender is a known service. Keys of networks are autonomous
// system numbers such as AS64500, or "-" if unknown.
func (d divided) isService() bool {
	_, isSystem := dmarcd.SystemNumber(d.base)
	return d.base != "" && d.base != "-" && !isSystem
}

// class returns the class of a sender: the one set by the team, else its last one. It is "" if
// the key is not a sender.
func (d *detector) class(key string) dmarcd.Class {
	classes := d.domain.Classes
	if class := cmp.Or(classes[key], classes[d.divided[key].base]); class != "" {
		return class
	}
	if known, ok := d.classes[key]; ok {
		return known
	}
	var class dmarcd.Class
	for at := int(d.day - d.first); at >= 0 && class == "" && d.sendersOf[key] != nil; at-- {
		class = d.sendersOf[key][at].Class
	}
	if d.classes == nil {
		d.classes = make(map[string]dmarcd.Class)
	}
	d.classes[key] = class
	return class
}

// senders finds senders of the owner whose mail no longer passes, and returns the keys of all
// their mail. It skips senders whose failures a broken DKIM key explains.
func (d *detector) senders() (failing []string) {
	var explained int64
	for _, d := range d.found {
		explained += int64(float64(d.Messages) * (1 - d.Observed))
	}
	for _, key := range slices.Sorted(maps.Keys(d.sendersOf)) {
		if class := d.class(key); class == dmarcd.ClassSpoofing || class == dmarcd.ClassForwarder {
			continue
		}
		today, usual, broke := d.broke(d.sendersOf[key])
		keys := []string{key}
		if !broke {
			today, keys, usual, broke = d.left(key)
		}
		if !broke {
			continue
		}
		failing = append(failing, keys...)
		if today.Fails() <= explained+explained/5 {
			continue
		}
		d.add(dmarcd.SenderFailing, today, dmarcd.Measured{
			Messages: today.Messages, Observed: rate(today.Passes, today.Messages), Usual: usual,
		})
	}
	return failing
}

// left is broke for an owner's sender including the mail of the same network or service that
// authenticates as no domain or as another one. Mail that no longer passes may be there, and
// then less of the sender's own mail passes.
func (d *detector) left(key string) (today dmarcd.MailPart, keys []string, usual float64, broke bool) {
	of := d.divided[key]
	if of.base == "" || !of.isOwn() {
		return today, nil, 0, false
	}
	all, name := make(series, Days), ""
	var passes []float64
	for at, part := range d.sendersOf[key] {
		name = cmp.Or(part.Name, name)
		if at < int(d.day-d.first) && part.Messages > 0 {
			passes = append(passes, float64(part.Passes))
		}
	}
	for other, parts := range d.sendersOf {
		with := d.divided[other]
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
	today, usual, broke = d.broke(all)
	today.Key, today.Name = key, name
	return today, keys, usual, broke && float64(today.Passes) <= halved*median(passes)
}

// foreign reports whether a sender is not the owner's, by the days up to the given one: it
// spoofs, or its class is unknown, none of its mail passes, and it is not a service that the
// owner may use.
func (d *detector) foreign(key string, day dmarcd.Day) bool {
	switch class := d.class(key); {
	case class == dmarcd.ClassSpoofing:
		return true
	case class != "" && class != dmarcd.ClassUnknown:
		return false
	}
	if of := d.divided[key]; of.isService() && of.part != partOthers {
		return false
	}
	of := d.before(d.sendersOf[key], day+1, Days)
	return of.rate() <= neverPasses
}

// newSenders finds senders without earlier mail: services, and networks whose mail passes. A
// network whose mail fails counts as spoofing instead; a forwarder is ignored, because
// recipients choose it.
func (d *detector) newSenders() {
	u, known := d.usualBefore(d.day, func(mail *dmarcd.MailDay) (float64, bool) { return float64(mail.Messages), true })
	if !known {
		return
	}
	least := max(minNew, int64(u.median/100))
	for _, s := range d.mail.Senders {
		if s.Messages < least || d.class(s.Key) == dmarcd.ClassForwarder || d.foreignToday(s.Key) || s.Key == unknownSender || d.sentBefore(s.Key) {
			continue
		}
		d.add(dmarcd.SenderNew, s, dmarcd.Measured{Messages: s.Messages, Observed: rate(s.Passes, s.Messages)})
	}
}

// unknownSender is the key of mail from an unknown network.
const unknownSender = "-"

// sentBefore reports whether a sender is not new on the day. An address keeps its first day
// when it is attributed to another part of its network. A service shares its addresses, so it
// is not new if any part of its mail other than the forwarded one is known.
func (d *detector) sentBefore(key string) bool {
	of := d.divided[key]
	same := func(other string) bool {
		with := divide(other)
		return other == key || of.isService() && with.base == of.base && with.part != partForwarding
	}
	for other, first := range d.domain.First {
		if first <= d.day-detected && same(other) {
			return true
		}
	}
	for other, parts := range d.sendersOf {
		if same(other) && d.before(parts, d.day-episode, Days).days > 0 {
			return true
		}
	}
	return false
}
