package insight

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

// maxMailParts is how many senders, selectors and receivers of a day are stored each, those with
// the most messages; maxAllMailParts bounds how many are gathered for all days of a scan.
const (
	maxMailParts    = 50
	maxAllMailParts = 1 << 17
)

// mailDays gathers what alerts are detected from.
type mailDays struct {
	*grouping
	days  map[mailDayOf]*mailDay
	parts int
	// signedBy are the keys that mail of a block is signed with.
	signedBy map[signed][]signedKey
}

type mailDayOf struct {
	domain dmarcd.DomainID
	day    dmarcd.Day
}

// mailDay is the mail of a domain on a day.
type mailDay struct {
	dmarcd.MailPart
	unverified                    int64
	senders, selectors, receivers map[string]*dmarcd.MailPart
}

// signedKey is a DKIM key of the domain, and whether the signature verifies.
type signedKey struct {
	name   string
	passed bool
}

func (m *mailDays) begin(b *rollup.Block) {
	m.grouping.begin(b)
	clear(m.signedBy)
}

func (m *mailDays) add(share *rollup.Share, records []rollup.Record) {
	of := mailDayOf{share.Domain, share.Day}
	day := m.days[of]
	if day == nil {
		day = &mailDay{senders: make(map[string]*dmarcd.MailPart), selectors: make(map[string]*dmarcd.MailPart), receivers: make(map[string]*dmarcd.MailPart)}
		m.days[of] = day
	}
	receiver := m.part(day.receivers, share.Reporter)
	for i := range records {
		r := &records[i]
		passes := r.Outcome.Compliant()
		addPart(&day.MailPart, r.Count, passes)
		if share.Unverified {
			addMessages(&day.unverified, r.Count)
		}
		addPart(receiver, r.Count, passes)
		addPart(m.part(day.senders, m.recognition.senders.keys[m.sender(share, r)]), r.Count, passes)
		for _, key := range m.keys(share, r) {
			addPart(m.part(day.selectors, key.name), r.Count, key.passed)
		}
	}
}

// maxKeyName limits the name of a DKIM key, as DNS does (RFC 1035 §2.3.4). Reports may have any.
const maxKeyName = 253

// keys returns the keys of the domain that a message is signed with.
func (m *mailDays) keys(share *rollup.Share, r *rollup.Record) []signedKey {
	signatures := m.block.Identities[r.Identity].Signatures
	if len(signatures) == 0 {
		return nil
	}
	of := signed{share.From, r.Identity}
	keys, known := m.signedBy[of]
	if !known {
		for _, s := range signatures {
			name := s.Selector + "._domainkey." + s.Domain
			if s.Selector == "" || len(name) > maxKeyName {
				continue
			}
			if dmarcd.Covers(s.Domain, share.From) || dmarcd.Covers(share.From, s.Domain) {
				keys = append(keys, signedKey{name, s.Passed()})
			}
		}
		m.signedBy[of] = keys
	}
	return keys
}

// part returns the part with a key, nil where there are too many.
func (m *mailDays) part(parts map[string]*dmarcd.MailPart, key string) *dmarcd.MailPart {
	part := parts[key]
	if part == nil && m.parts < maxAllMailParts {
		m.parts++
		part = new(dmarcd.MailPart)
		parts[strings.Clone(key)] = part
	}
	return part
}

func addPart(part *dmarcd.MailPart, messages int64, passes bool) {
	if part == nil {
		return
	}
	addMessages(&part.Messages, messages)
	if passes {
		addMessages(&part.Passes, messages)
	}
}

// found returns the days that were gathered, with the classes of the senders.
func (m *mailDays) found(class func(dmarcd.DomainID, senderIndex) dmarcd.Class) []dmarcd.DomainDay {
	classes := make(map[senderOf]dmarcd.Class)
	all := make([]dmarcd.DomainDay, 0, len(m.days))
	for of, day := range m.days {
		senders := largestParts(day.senders)
		for i := range senders {
			at := senderOf{of.domain, m.recognition.senders.byKey[senders[i].Key]}
			if _, known := classes[at]; !known {
				classes[at] = class(at.domain, at.sender)
			}
			senders[i].Name, senders[i].Class = m.recognition.senderName(m.recognition.senders.list[at.sender]), classes[at]
		}
		all = append(all, dmarcd.DomainDay{Domain: of.domain, MailDay: dmarcd.MailDay{
			Day: of.day, Messages: day.Messages, Passes: day.Passes, Unverified: day.unverified,
			Senders: senders, Selectors: largestParts(day.selectors), Receivers: largestParts(day.receivers),
		}})
	}
	slices.SortFunc(all, func(a, b dmarcd.DomainDay) int {
		return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Day, b.Day))
	})
	return all
}

// largestParts returns the parts with the most messages.
func largestParts(parts map[string]*dmarcd.MailPart) []dmarcd.MailPart {
	var all []dmarcd.MailPart
	for key, part := range parts {
		part.Key, part.Name = key, key
		all = append(all, *part)
	}
	return top(all, maxMailParts, func(a, b dmarcd.MailPart) int {
		return cmp.Or(cmp.Compare(b.Messages, a.Messages), cmp.Compare(a.Key, b.Key))
	})
}
