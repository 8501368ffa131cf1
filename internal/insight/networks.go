package insight

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/rollup"
	"github.com/dmarcd/dmarcd/internal/senders"
)

// network is a known sender or an autonomous system. Its mail may belong to several senders.
type network struct {
	key, name string
	// sender is the known sender, nil for a system.
	sender *senders.Sender
	number uint32 // of a system
	// country is the country of the address with the most messages, for a system.
	country  string
	messages int64 // of that address
	division division
}

// division is how the mail of a network is divided into senders.
type division uint8

const (
	byAddress   division = iota // addresses of customers: systems and hosting companies
	byRecord                    // addresses that customers share: mailbox providers and gateways
	byAlignment                 // other services
	undivided                   // forwarders, lists, and senders that the team added
)

// divisionOf returns how the mail of a known sender is divided.
func divisionOf(s *senders.Sender) division {
	_, isSystem := dmarcd.SystemNumber(s.Key)
	switch {
	case s.Relays():
		return undivided
	case s.Category == senders.Added && !isSystem:
		return undivided
	case s.Category == senders.Added, s.Category == senders.Hosting:
		return byAddress
	case s.Category == senders.Mailboxes, s.Category == senders.Gateway:
		return byRecord
	}
	return byAlignment
}

// inCatalogue reports whether the network is a sender of the catalogue.
func (n *network) inCatalogue() bool { return n.sender != nil && n.sender.Category != senders.Added }

// category returns the category of a known sender, "" for other networks.
func (n *network) category() string {
	if n.sender == nil {
		return ""
	}
	return string(n.sender.Category)
}

// detail returns the category of a known sender, or the country of a system.
func (n *network) detail() string {
	if n.sender == nil && n.country != "" {
		return countryName(n.country)
	}
	return n.category()
}

// networkIndex is an index of the list of networks.
type networkIndex uint32

// noNetwork is the index of the unknown network.
const noNetwork networkIndex = 0

// networks are those that mail came from: at most as many as there are autonomous
// systems and known senders.
type networks struct {
	list  []network
	byKey map[string]networkIndex
}

func newNetworks() networks {
	return networks{list: []network{{key: notReported, name: "Unknown networks"}}, byKey: make(map[string]networkIndex)}
}

func (n *networks) add(added network) networkIndex {
	at, known := n.byKey[added.key]
	if !known {
		at = networkIndex(len(n.list)) //nolint:gosec // there are few
		n.byKey[added.key] = at
		n.list = append(n.list, added)
	}
	return at
}

// addSender returns the index of a known sender.
func (n *networks) addSender(sender senders.Sender) networkIndex {
	at := n.add(network{key: sender.Key, name: sender.Name, sender: &sender, division: divisionOf(&sender)})
	if of := &n.list[at]; of.sender == nil { // a system that the team named
		of.name, of.sender, of.division = sender.Name, &sender, divisionOf(&sender)
	}
	return at
}

// addSystem returns the index of the autonomous system of an address with that many
// messages.
func (n *networks) addSystem(origin senders.Origin, messages int64) networkIndex {
	of := origin.Network
	if of.Number == 0 {
		return noNetwork
	}
	key := systemKey(of.Number)
	at := n.add(network{key: key, name: cmp.Or(of.Name, key), number: of.Number, country: origin.Country})
	if system := &n.list[at]; messages > system.messages || messages == system.messages && origin.Country < system.country {
		system.messages, system.country = messages, origin.Country
	}
	return at
}

func systemKey(number uint32) string { return "AS" + strconv.FormatUint(uint64(number), 10) }

// addressOrigin is the known sender that an address belongs to, if there is one, and its
// autonomous system. It is certain if the team assigned the address to the sender.
type addressOrigin struct {
	sender, system networkIndex
	certain        bool
}

// of returns the network of a record: the sender to which the team assigned the address, else a
// forwarder or list that signed, else a known sender by the address, else by who signed, else
// the autonomous system of the address.
func (n *networks) of(o addressOrigin, signer networkIndex) networkIndex {
	switch by := n.list[signer].sender; {
	case o.certain:
		return o.sender
	case by != nil && by.Relays():
		return signer
	case o.sender != noNetwork:
		return o.sender
	case signer != noNetwork:
		return signer
	}
	return o.system
}

// maxRemembered limits the caches of addresses and of domains.
const maxRemembered = 2 * MaxListed

// part is a part of the mail of a network that acts as one sender.
type part uint8

const (
	partWhole      part = iota // all of an undivided network; the aligned mail of a service
	partYours                  // linked to the domain
	partForwarding             // carries its signature, or is reported as forwarded
	partAs                     // authenticates as one other domain
	partOthers
	partRest       // the mail of a service that is not aligned
	partClassified // an address or network that the team classified
)

// sender is a service, or the part of a network that acts as one; see docs/senders.md.
type sender struct {
	network networkIndex
	part    part
	// as is the other domain of partAs, and the key of partClassified.
	as string
}

// senderIndex is an index of the list of senders.
type senderIndex uint32

// maxSenders limits the senders: outsiders choose the domains as which mail authenticates. Beyond the
// limit, mail that authenticates as another domain is part of partOthers.
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
		return n.name + " (yours)"
	case partForwarding:
		return n.name + " (forwarding)"
	case partAs:
		return n.name + " (as " + s.as + ")"
	case partOthers:
		return n.name + " (others)"
	case partRest:
		return n.name + " (not aligned)"
	case partClassified:
		return s.as
	}
	return n.name
}

// senderOf returns the sender of a record. of is the mail of its address, nil if there were too many
// addresses.
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

// partOfRecord returns the part that a record belongs to if customers share addresses.
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
