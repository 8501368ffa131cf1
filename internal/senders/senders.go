// Package senders identifies the sender of mail by its address: the network and the country
// from files (Atlas), the service from catalogue.toml (Catalogue), and the host name from DNS
// (Names).
//
// Lookups for a page never wait: an Atlas and a Catalogue are in memory, and Names returns what
// it knows and resolves the rest later. Package networks builds the files.
package senders

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/dmarcd/dmarcd/dns"
)

// Kind is the role of a known sender in the mail of a domain.
type Kind string

// The kinds of senders.
const (
	// Service sends mail for its customers.
	Service Kind = "service"
	// Forwarder forwards mail to its users.
	Forwarder Kind = "forwarder"
	// List distributes mail to the subscribers of mailing lists.
	List Kind = "list"
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Service, Forwarder, List} }

// Category is the business of a service, for display.
type Category string

// The categories. Forwarders and lists have the last two.
const (
	Mailboxes     Category = "mailbox provider"
	Marketing     Category = "marketing"
	Transactional Category = "transactional"
	CRM           Category = "crm and support"
	Business      Category = "business application"
	Gateway       Category = "security gateway"
	Hosting       Category = "hosting"
	Forwarding    Category = "forwarder"
	MailingList   Category = "mailing list"
	// Added is the category of senders that a team added.
	Added Category = "named by your team"
)

// Categories returns the categories of the catalogue.
func Categories() []Category {
	return []Category{Mailboxes, Marketing, Transactional, CRM, Business, Gateway, Hosting, Forwarding, MailingList}
}

// Sender is a service, a forwarder or a mailing list host, and how it is recognized.
type Sender struct {
	// Key identifies the sender in URLs of pages and of the API.
	Key, Name string
	Kind      Kind
	Category  Category
	// Networks are the autonomous systems from which only this sender sends mail. Clouds, which
	// all their customers use, do not qualify.
	Networks []uint32
	// Hosts are the names at or below which its sending hosts are. Except are names below them
	// that belong to customers' machines.
	Hosts, Except []string
	// Domains are its own domains in signatures and envelope senders, and the parents of those
	// of its customers.
	Domains []string
	// Addresses are the networks from which only this sender sends mail. Only senders that a
	// team added have them.
	Addresses []netip.Prefix
	// Setup explains in sentences what a customer publishes or enables so that its mail is
	// aligned with the customer's domain.
	Setup string
}

// Relays reports whether the sender forwards mail of others.
func (s Sender) Relays() bool { return s.Kind == Forwarder || s.Kind == List }

//go:embed catalogue.toml
var knownText string

// Known returns the built-in senders. The file has what services document or show in every
// mail; an autonomous system is listed only if no other sender uses it.
func Known() []Sender {
	all, err := ParseSenders(knownText)
	if err != nil {
		panic(err) // the file is embedded and tested
	}
	return all
}

// maxFileBytes limits the file of an operator.
const maxFileBytes = 8 << 20

// ReadSenders reads the file of an operator, in the format of catalogue.toml.
func ReadSenders(path string) ([]Sender, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read senders: %w", err)
	}
	if info.Size() > maxFileBytes {
		return nil, fmt.Errorf("read senders: %s has more than %d bytes", path, maxFileBytes)
	}
	text, err := os.ReadFile(path) //nolint:gosec // the operator chose it
	if err != nil {
		return nil, fmt.Errorf("read senders: %w", err)
	}
	all, err := ParseSenders(string(text))
	if err != nil {
		return nil, fmt.Errorf("read senders: %s: %w", path, err)
	}
	return all, nil
}

// entry is a sender in the file.
type entry struct {
	Key      string   `toml:"key"`
	Name     string   `toml:"name"`
	Kind     Kind     `toml:"kind"`
	Category Category `toml:"category"`
	Networks []uint32 `toml:"networks"`
	Hosts    []string `toml:"hosts"`
	Except   []string `toml:"except"`
	Domains  []string `toml:"domains"`
	Setup    string   `toml:"setup"`
}

// ParseSenders parses senders in the format of catalogue.toml. It returns an error for an
// unknown field, a repeated key, or a sender that nothing identifies.
func ParseSenders(text string) ([]Sender, error) {
	var file struct {
		Senders []entry `toml:"sender"`
	}
	about, err := toml.Decode(text, &file)
	if err != nil {
		return nil, err
	}
	if unknown := about.Undecoded(); len(unknown) > 0 {
		return nil, fmt.Errorf("unknown field %s", unknown[0])
	}
	all, keys := make([]Sender, len(file.Senders)), make(map[string]bool)
	for i, e := range file.Senders {
		if all[i], err = e.sender(); err != nil {
			return nil, fmt.Errorf("sender %q: %w", e.Key, err)
		}
		if keys[e.Key] {
			return nil, fmt.Errorf("sender %q: the key is there twice", e.Key)
		}
		keys[e.Key] = true
	}
	return all, nil
}

var keyForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$`)

// sender validates an entry and converts it.
func (e entry) sender() (Sender, error) {
	switch e.Kind {
	case Forwarder:
		e.Category = Forwarding
	case List:
		e.Category = MailingList
	}
	switch {
	case !keyForm.MatchString(e.Key):
		return Sender{}, errors.New("the key must be lower-case letters, digits and hyphens, at most 64")
	case strings.TrimSpace(e.Name) == "":
		return Sender{}, errors.New("the name is missing")
	case !slices.Contains(Kinds(), e.Kind):
		return Sender{}, fmt.Errorf("the kind must be one of %q", Kinds())
	case !slices.Contains(Categories(), e.Category):
		return Sender{}, fmt.Errorf("the category must be one of %q", Categories())
	case len(e.Networks)+len(e.Hosts)+len(e.Domains) == 0:
		return Sender{}, errors.New("it needs hosts, domains or networks")
	case slices.Contains(e.Networks, 0):
		return Sender{}, errors.New("there is no network 0")
	case strings.TrimSpace(e.Setup) == "":
		return Sender{}, errors.New("setup is missing")
	}
	for _, name := range slices.Concat(e.Hosts, e.Except, e.Domains) {
		if !dns.IsHostname(name) || name != strings.ToLower(name) || !strings.Contains(name, ".") {
			return Sender{}, fmt.Errorf("%q is not a domain name in lower case", name)
		}
	}
	return Sender{
		Key: e.Key, Name: e.Name, Kind: e.Kind, Category: e.Category, Networks: e.Networks, Hosts: e.Hosts, Except: e.Except, Domains: e.Domains,
		Setup: e.Setup,
	}, nil
}

// Clues are what is known about the origin of mail. Each may be missing.
type Clues struct {
	// Host is the forward-confirmed name of the address; see Names.
	Host string
	// Network is the number of the autonomous system of the address; see Atlas.
	Network uint32
	// Domains are the domains that passed DKIM or SPF. Any sender can use a domain that fails.
	Domains []string
}

// Catalogue recognizes senders. It is safe for concurrent use.
type Catalogue struct {
	all      []Sender
	byKey    map[string]*Sender
	hosts    map[string]*Sender // nil for an exception
	networks map[uint32]*Sender
	domains  map[string]*Sender
	// addresses are networks; lengths are the lengths of their prefixes, longest first.
	addresses map[netip.Prefix]*Sender
	lengths   []int
}

// NewCatalogue returns a catalogue of the senders. If several claim the same, the first one
// wins. A sender without a key gets its name as key.
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

// With returns a catalogue in which the senders of a team take precedence. One with the key of
// a built-in sender extends it: it has the team's name, and is recognized by the clues of both.
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

// OfAddress returns the sender with the narrowest network that contains the address, false if
// there is none.
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

// Sender returns the sender with a key, false if there is none.
func (c *Catalogue) Sender(key string) (Sender, bool) {
	if sender := c.byKey[key]; sender != nil {
		return *sender, true
	}
	return Sender{}, false
}

// Identify returns the sender that the clues identify, false if there is none.
//
// A forwarder or mailing list that authenticated as itself takes precedence: the mail passed
// through it, even if a mailbox provider's host delivered it. Then the host and its network
// decide, and last the domains: a signature survives forwarding.
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

// ofDomains returns the sender that claims one of the domains; forwarders and lists first.
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

// nearest returns the sender that claims the name, or its nearest parent.
func nearest(claimed map[string]*Sender, name string) *Sender {
	for ; name != ""; name = dns.Parent(name) {
		if sender, known := claimed[name]; known {
			return sender
		}
	}
	return nil
}
