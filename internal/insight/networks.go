package insight

import (
	"cmp"
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/senders"
)

// network is a known sender, or an autonomous system. Its mail may be that of several senders.
type network struct {
	key, name string
	// sender is the known sender, nil for a system.
	sender *senders.Sender
	number uint32 // of a system
	// country is that of the address of a system with the most messages.
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

// category is that of a known sender, "" for all others.
func (n *network) category() string {
	if n.sender == nil {
		return ""
	}
	return string(n.sender.Category)
}

// detail is what else is known of a network: the category of a known sender, the country of a
// system.
func (n *network) detail() string {
	if n.sender == nil && n.country != "" {
		return countryName(n.country)
	}
	return n.category()
}

// networkIndex is an index of the list of networks.
type networkIndex uint32

// noNetwork is the index of the network of which nothing is known.
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

// maxRemembered is how many addresses, and how many domains, are cached with what is known of
// them.
const maxRemembered = 2 * MaxListed
