package insight

import (
	"cmp"
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/senders"
)

// network is a known sender, or an autonomous system.
type network struct {
	key, name string
	// kind is what a known sender does, "" for all others.
	kind   senders.Kind
	number uint32 // of a system
	// country is that of the address of a system with the most messages.
	country  string
	messages int64 // of that address
}

func (n *network) isKnown() bool { return n.kind != "" }

// networkPlace is a place in the list of networks.
type networkPlace uint32

// noNetwork is the place of the network of which nothing is known.
const noNetwork networkPlace = 0

// networks are those that mail came from.
type networks struct {
	list   []network
	places map[string]networkPlace // by key
}

func newNetworks() networks {
	return networks{list: []network{{key: notTold}}, places: make(map[string]networkPlace)}
}

func (n *networks) add(added network) networkPlace {
	at, known := n.places[added.key]
	if !known {
		at = networkPlace(len(n.list)) //nolint:gosec // there are fewer than addresses and identities
		n.places[added.key] = at
		n.list = append(n.list, added)
	}
	return at
}

// addSender returns the place of a known sender.
func (n *networks) addSender(sender senders.Sender) networkPlace {
	return n.add(network{key: sender.Name, name: sender.Name, kind: sender.Kind})
}

// addSystem returns the place of the autonomous system of an address.
func (n *networks) addSystem(a *address) networkPlace {
	of := a.origin.Network
	if of.Number == 0 {
		return noNetwork
	}
	key := systemKey(of.Number)
	at := n.add(network{key: key, name: cmp.Or(of.Name, key), number: of.Number})
	if system := &n.list[at]; a.messages > system.messages || a.messages == system.messages && a.origin.Country < system.country {
		system.messages, system.country = a.messages, a.origin.Country
	}
	return at
}

func systemKey(number uint32) string { return "AS" + strconv.FormatUint(uint64(number), 10) }

// networkOf returns the network of a record: a known sender by the address, else by
// who signed, else the autonomous system of the address.
func (m *Mail) networkOf(r *dmarcd.Sent) networkPlace {
	from := m.homes[r.Address]
	if from.sender != noNetwork {
		return from.sender
	}
	if by := m.signers[r.Identities]; by != noNetwork {
		return by
	}
	return from.system
}
