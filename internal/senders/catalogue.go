package senders

import (
	"slices"

	"github.com/dmarcd/dmarcd/dns"
)

// Kind is what a known sender does.
type Kind string

// The kinds of senders.
const (
	Mailboxes     Kind = "mailbox provider"
	Marketing     Kind = "marketing"
	Transactional Kind = "transactional"
	CRM           Kind = "crm and support"
	Business      Kind = "business application"
	Gateway       Kind = "security gateway"
	Hosting       Kind = "hosting"
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{Mailboxes, Marketing, Transactional, CRM, Business, Gateway, Hosting}
}

// Sender is a service that sends mail for others, and how it is recognised.
type Sender struct {
	Name string
	Kind Kind
	// Networks holds the numbers of autonomous systems in which nobody else sends
	// mail. Those of clouds, where everybody does, do not belong here.
	Networks []uint32
	// Hosts holds names at or below which its sending hosts are.
	Hosts []string
	// Domains holds domains of its own that it signs with, or uses as envelope
	// sender, or at or below which its customers' are.
	Domains []string
}

// Clues are what is known about where some mail came from. Each may be missing.
type Clues struct {
	// Host is the forward-confirmed name of the address; see Names.
	Host string
	// Network is the number of the autonomous system of the address; see Atlas.
	Network uint32
	// Domains holds the domains that passed DKIM or SPF. One that did not pass says
	// nothing: anybody can write it.
	Domains []string
}

// Catalogue recognises senders. It is safe for concurrent use.
type Catalogue struct {
	all      []Sender
	hosts    map[string]*Sender
	networks map[uint32]*Sender
	domains  map[string]*Sender
}

// NewCatalogue returns a catalogue of the senders, in which the first one counts
// where several claim the same.
func NewCatalogue(all []Sender) *Catalogue {
	c := &Catalogue{
		all:      slices.Clone(all),
		hosts:    map[string]*Sender{},
		networks: map[uint32]*Sender{},
		domains:  map[string]*Sender{},
	}
	for i := range c.all {
		sender := &c.all[i]
		claim(c.hosts, sender.Hosts, sender)
		claim(c.networks, sender.Networks, sender)
		claim(c.domains, sender.Domains, sender)
	}
	return c
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

// Identify returns the sender that the clues point to, and whether there is one.
//
// The host and its network say who delivered the mail. The domains come last: a
// signature stays on a mail that somebody else forwards.
func (c *Catalogue) Identify(clues Clues) (Sender, bool) {
	if sender := nearest(c.hosts, clues.Host); sender != nil {
		return *sender, true
	}
	if sender := c.networks[clues.Network]; sender != nil {
		return *sender, true
	}
	for _, domain := range clues.Domains {
		if sender := nearest(c.domains, domain); sender != nil {
			return *sender, true
		}
	}
	return Sender{}, false
}

// nearest returns who claims the name or the nearest one above it.
func nearest(claimed map[string]*Sender, name string) *Sender {
	for ; name != ""; name = dns.Parent(name) {
		if sender := claimed[name]; sender != nil {
			return sender
		}
	}
	return nil
}
