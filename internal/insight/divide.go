package insight

import (
	"strings"

	"github.com/dmarcd/dmarcd/internal/rollup"
)

// part is a part of the mail of a network that acts as one sender.
type part uint8

const (
	partWhole      part = iota // all of an undivided network; the aligned mail of a service
	partYours                  // linked to the domain
	partForwarding             // carries its signature, or is reported as forwarded
	partAs                     // authenticates as one other domain
	partOthers
	partRest       // of a service: what is not aligned
	partClassified // an address or network that the team classified
)

// sender is what acts as one: see docs/senders.md.
type sender struct {
	network networkIndex
	part    part
	// as is the other domain of partAs, and the key of partClassified.
	as string
}

// senderIndex is an index of the list of senders.
type senderIndex uint32

// maxSenders bounds the senders: outsiders choose the domains as which mail authenticates. Beyond
// it, they are others.
const maxSenders = MaxListed / 8

// senderList are the senders of some mail, with their keys.
type senderList struct {
	list    []sender
	keys    []string
	byValue map[sender]senderIndex
	byKey   map[string]senderIndex
}

// add returns the index of a sender.
func (r *recognition) add(s sender) senderIndex {
	l := &r.senders
	at, known := l.byValue[s]
	if known {
		return at
	}
	if s.part == partAs && len(l.list) >= maxSenders {
		return r.add(sender{network: s.network, part: partOthers})
	}
	s.as = strings.Clone(s.as)
	at = senderIndex(len(l.list)) //nolint:gosec // there are few
	key := r.senderKey(s)
	l.list, l.keys = append(l.list, s), append(l.keys, key)
	l.byValue[s], l.byKey[key] = at, at
	return at
}

// senderKey returns the key of a sender; see dmarcd.ParseSenderKey.
func (r *recognition) senderKey(s sender) string {
	base := r.networks.list[s.network].key
	switch s.part {
	case partYours:
		return base + ":yours"
	case partForwarding:
		return base + ":forwarding"
	case partAs:
		return base + ":as:" + s.as
	case partOthers:
		return base + ":others"
	case partRest:
		return base + ":rest"
	case partClassified:
		return s.as
	}
	return base
}

// senderName returns the name of a sender for people.
func (r *recognition) senderName(s sender) string {
	n := &r.networks.list[s.network]
	switch s.part {
	case partYours:
		if n.division == byRecord {
			return n.name + ", your mail"
		}
		return n.name + ", your servers"
	case partForwarding:
		return n.name + ", forwarding"
	case partAs:
		return n.name + ", as " + s.as
	case partOthers:
		return n.name + ", others"
	case partRest:
		return n.name + ", not aligned"
	case partClassified:
		return s.as
	}
	return n.name
}

// senderOf returns the sender of a record. of is the mail of its address, nil if it is not
// remembered.
func (d *domainLinks) senderOf(r *recognition, of *addressMail, network networkIndex, form string, record *rollup.Record, e *evaluation, relayed bool) sender {
	s := sender{network: network}
	switch r.networks.list[network].division {
	case byAddress:
		if of != nil {
			s.part, s.as = of.part, of.as
		} else {
			s.part, s.as = d.partOfRecord(nil, form, record, e, relayed)
		}
	case byRecord:
		s.part, s.as = d.partOfRecord(of, form, record, e, relayed)
	case byAlignment:
		if !e.passesSPF(record.Outcome) && !e.passesDKIM(record.Outcome) && !d.passesAt(network, e) {
			s.part = partRest
		}
	case undivided:
	}
	return s
}

// partOfRecord returns the part that a record is, where customers share addresses.
func (d *domainLinks) partOfRecord(of *addressMail, form string, record *rollup.Record, e *evaluation, relayed bool) (part, string) {
	other := e.other()
	linked := of != nil && of.link != linkNone || of == nil && d.authorized.lists(rollup.Address(form))
	signed := d.signsElsewhere(of, e)
	switch {
	case e.passesSPF(record.Outcome), e.passesDKIM(record.Outcome) && !signed, linked && other == "":
		return partYours, ""
	case signed, relayed, of != nil && other == "" && float64(of.relayed) >= enoughRelayed*float64(max(of.unaligned, 1)):
		return partForwarding, ""
	case other != "":
		return partAs, other
	}
	return partOthers, ""
}
