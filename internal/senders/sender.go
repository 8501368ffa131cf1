package senders

import "net/netip"

// Kind is what a known sender does with the mail of a domain.
type Kind string

// The kinds of senders.
const (
	// Service sends for its customers.
	Service Kind = "service"
	// Forwarder passes on what was sent to its users.
	Forwarder Kind = "forwarder"
	// List distributes mail to the subscribers of mailing lists.
	List Kind = "list"
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Service, Forwarder, List} }

// Category is the trade of a service, for people.
type Category string

// The categories. The last two are those of forwarders and lists.
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
	// Added is that of senders that are not in the catalogue, but that a team added.
	Added Category = "named by your team"
)

// Categories returns all categories of the catalogue.
func Categories() []Category {
	return []Category{Mailboxes, Marketing, Transactional, CRM, Business, Gateway, Hosting, Forwarding, MailingList}
}

// Sender is a service, a forwarder or a host of mailing lists, and how it is recognized.
type Sender struct {
	// Key names the sender in addresses of pages and of the API.
	Key, Name string
	Kind      Kind
	Category  Category
	// Networks holds the numbers of autonomous systems in which only this sender sends
	// mail. Those of clouds, which all their customers use, do not belong here.
	Networks []uint32
	// Hosts holds names at or below which its sending hosts are, and Except names below
	// those that belong to machines of customers.
	Hosts, Except []string
	// Domains holds domains of its own that it signs with, or uses as envelope
	// sender, or at or below which its customers' are.
	Domains []string
	// Addresses holds networks in which only this sender sends mail: those of senders that a
	// team added.
	Addresses []netip.Prefix
	// AlignsSPF and AlignsDKIM tell whether a customer can have its mail pass SPF and
	// DKIM for the customer's own domain.
	AlignsSPF, AlignsDKIM bool
	// Setup is sentences that tell a customer what to publish or enable for that.
	Setup string
}

// Relays reports whether the sender passes on mail that others sent.
func (s Sender) Relays() bool { return s.Kind == Forwarder || s.Kind == List }
