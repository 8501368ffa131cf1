package senders

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/dmarcd/dmarcd/dns"
)

// Clues are what is known about where some mail came from. Each may be missing.
type Clues struct {
	// Host is the forward-confirmed name of the address; see Names.
	Host string
	// Network is the number of the autonomous system of the address; see Atlas.
	Network uint32
	// Domains holds the domains that passed DKIM or SPF. One that did not pass says
	// nothing: any sender can write it.
	Domains []string
}

// Catalogue recognizes senders. It is safe for concurrent use.
type Catalogue struct {
	all      []Sender
	byKey    map[string]*Sender
	hosts    map[string]*Sender // nil for an exception
	networks map[uint32]*Sender
	domains  map[string]*Sender
	// addresses are networks of addresses; lengths are those of their prefixes, longest first.
	addresses map[netip.Prefix]*Sender
	lengths   []int
}

// NewCatalogue returns a catalogue of the senders, in which the first one counts
// where several claim the same. A sender without a key has its name as key.
func NewCatalogue(all []Sender) *Catalogue {
	c := &Catalogue{
		all:      slices.Clone(all),
		byKey:    map[string]*Sender{},
		hosts:    map[string]*Sender{},
		networks: map[uint32]*Sender{},
		domains:  map[string]*Sender{},

		addresses: map[netip.Prefix]*Sender{},
	}
	for i := range c.all {
		sender := &c.all[i]
		sender.Key = cmp.Or(sender.Key, sender.Name)
		claim(c.byKey, []string{sender.Key}, sender)
		claim(c.hosts, sender.Hosts, sender)
		claim(c.hosts, sender.Except, nil)
		claim(c.networks, sender.Networks, sender)
		claim(c.domains, sender.Domains, sender)
		claim(c.addresses, sender.Addresses, sender)
	}
	for prefix := range c.addresses {
		c.lengths = append(c.lengths, prefix.Bits())
	}
	slices.SortFunc(c.lengths, func(a, b int) int { return cmp.Compare(b, a) })
	c.lengths = slices.Compact(c.lengths)
	return c
}

// With returns a catalogue in which the senders of a team come first. One with the key of a
// sender of the catalogue corrects it: its name counts, and it is recognized by more.
func (c *Catalogue) With(own []Sender) *Catalogue {
	all := make([]Sender, 0, len(own)+len(c.all))
	for _, sender := range own {
		if known := c.byKey[sender.Key]; known != nil {
			corrected := *known
			corrected.Name, corrected.Addresses = sender.Name, sender.Addresses
			corrected.Hosts = slices.Concat(sender.Hosts, known.Hosts)
			corrected.Domains = slices.Concat(sender.Domains, known.Domains)
			sender = corrected
		}
		all = append(all, sender)
	}
	return NewCatalogue(append(all, c.all...))
}

// OfAddress returns the sender that has the narrowest network with an address, and whether
// there is one.
func (c *Catalogue) OfAddress(addr netip.Addr) (Sender, bool) {
	for _, length := range c.lengths {
		prefix, err := addr.Prefix(length)
		if err != nil {
			continue // too long for IPv4
		}
		if sender := c.addresses[prefix]; sender != nil {
			return *sender, true
		}
	}
	return Sender{}, false
}

func claim[K comparable](claimed map[K]*Sender, keys []K, by *Sender) {
	for _, key := range keys {
		if _, taken := claimed[key]; !taken {
			claimed[key] = by
		}
	}
}

// Senders returns all senders of the catalogue.
func (c *Catalogue) Senders() []Sender { return slices.Clone(c.all) }

// Sender returns the sender with a key, and whether there is one.
func (c *Catalogue) Sender(key string) (Sender, bool) {
	if sender := c.byKey[key]; sender != nil {
		return *sender, true
	}
	return Sender{}, false
}

// Identify returns the sender that the clues point to, and whether there is one.
//
// A forwarder or a mailing list that authenticated as itself comes first: the mail went
// through it, even if its host is a mailbox provider's. Otherwise the host and its
// network say who delivered the mail, and the domains come last: a signature stays on a
// mail that is forwarded.
func (c *Catalogue) Identify(clues Clues) (Sender, bool) {
	byDomain := c.ofDomains(clues.Domains)
	if byDomain != nil && byDomain.Relays() {
		return *byDomain, true
	}
	if sender := nearest(c.hosts, clues.Host); sender != nil {
		return *sender, true
	}
	if sender := c.networks[clues.Network]; sender != nil {
		return *sender, true
	}
	if byDomain != nil {
		return *byDomain, true
	}
	return Sender{}, false
}

// ofDomains returns who claims one of the domains: a forwarder or list before others.
func (c *Catalogue) ofDomains(domains []string) *Sender {
	var first *Sender
	for _, domain := range domains {
		sender := nearest(c.domains, domain)
		if sender != nil && sender.Relays() {
			return sender
		}
		if first == nil {
			first = sender
		}
	}
	return first
}

// nearest returns who claims the name or the nearest one above it.
func nearest(claimed map[string]*Sender, name string) *Sender {
	for ; name != ""; name = dns.Parent(name) {
		if sender, known := claimed[name]; known {
			return sender
		}
	}
	return nil
}
