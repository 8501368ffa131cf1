package insight

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd/internal/rollup"
	"github.com/dmarcd/dmarcd/internal/senders"
)

// network is a known sender, or an autonomous system.
type network struct {
	key, name string
	// sender is the known sender, nil for a system.
	sender *senders.Sender
	number uint32 // of a system
	// country is that of the address of a system with the most messages.
	country  string
	messages int64 // of that address
}

func (n *network) isKnown() bool { return n.sender != nil }

// category is the trade of a known sender, "" for all others.
func (n *network) category() string {
	if n.sender == nil {
		return ""
	}
	return string(n.sender.Category)
}

// label returns the name of a network for people, and what else is known of it.
func (n *network) label() (name, detail string) {
	switch {
	case n.key == notReported:
		return notReportedNames[GroupNetwork], ""
	case !n.isKnown() && n.country != "":
		return n.name, countryName(n.country)
	}
	return n.name, n.category()
}

// networkPlace is a place in the list of networks.
type networkPlace uint32

// noNetwork is the place of the network of which nothing is known.
const noNetwork networkPlace = 0

// networks are those that mail came from: at most as many as there are autonomous
// systems and known senders.
type networks struct {
	list   []network
	places map[string]networkPlace // by key
}

func newNetworks() networks {
	return networks{list: []network{{key: notReported}}, places: make(map[string]networkPlace)}
}

func (n *networks) add(added network) networkPlace {
	at, known := n.places[added.key]
	if !known {
		at = networkPlace(len(n.list)) //nolint:gosec // there are few
		n.places[added.key] = at
		n.list = append(n.list, added)
	}
	return at
}

// addSender returns the place of a known sender.
func (n *networks) addSender(sender senders.Sender) networkPlace {
	at := n.add(network{key: sender.Key, name: sender.Name, sender: &sender})
	if of := &n.list[at]; of.sender == nil { // a system that the team named
		of.name, of.sender = sender.Name, &sender
	}
	return at
}

// addSystem returns the place of the autonomous system of an address with so many
// messages.
func (n *networks) addSystem(origin senders.Origin, messages int64) networkPlace {
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

// home is the known sender that an address belongs to, if it does, and else its
// autonomous system. It is certain if the team says so of the address.
type home struct {
	sender, system networkPlace
	certain        bool
}

// of returns the network of a record: the sender to which the team assigned the address, else a
// forwarder or list that signed, else a known sender by the address, else by who signed, else
// the autonomous system of the address.
func (n *networks) of(h home, signer networkPlace) networkPlace {
	switch by := n.list[signer].sender; {
	case h.certain:
		return h.sender
	case by != nil && by.Relays():
		return signer
	case h.sender != noNetwork:
		return h.sender
	case signer != noNetwork:
		return signer
	}
	return h.system
}

// maxRemembered is how many addresses, and how many domains, are remembered with what is
// known of them. To find it out again takes longer.
const maxRemembered = 2 * MaxListed

// origins knows where addresses belong to, by their form in rollups.
type origins struct {
	atlas *senders.Atlas
	known map[string]senders.Origin
}

func (o *origins) of(form string) senders.Origin {
	origin, known := o.known[form]
	if !known {
		origin = o.atlas.Locate(rollup.Address(form))
		if len(o.known) < maxRemembered {
			o.known[strings.Clone(form)] = origin
		}
	}
	return origin
}
