package dmarcd

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Sender is a known service or a network that sends mail as a domain.
type Sender struct {
	// Domain is 0 for all domains of a team.
	Domain DomainID
	// Key identifies the sender.
	Key string
	SeenDays
}

// SeenDays is a range of days, both ends included.
type SeenDays struct{ First, Last Day }

// And extends the range to include a day.
func (d SeenDays) And(day Day) SeenDays {
	return SeenDays{First: min(d.First, day), Last: max(d.Last, day)}
}

// ReverseName is the name of a source address. All teams share it: it comes from DNS.
type ReverseName struct {
	Addr netip.Addr
	// Name is the verified reverse name, "" if there is none.
	Name string
	// CheckedAt is the time of the lookup.
	CheckedAt time.Time
}

// Class is the relation of a sender to a domain.
type Class string

// The classes.
const (
	// ClassYours sends on behalf of the owner of the domain.
	ClassYours Class = "yours"
	// ClassService is a known service, which may send on behalf of the owner.
	ClassService Class = "service"
	// ClassForwarder forwards mail of the domain; it may be a mailing list.
	ClassForwarder Class = "forwarder"
	// ClassUnknown means that the reports do not say enough to classify the sender.
	ClassUnknown Class = "unknown"
	// ClassSpoofing uses the domain without any sign that the owner authorized it.
	ClassSpoofing Class = "spoofing"
)

// Legitimate reports whether mail of this class is sent on behalf of the owner.
func (c Class) Legitimate() bool { return c == ClassYours || c == ClassService }

// ParseSenderClass parses a class that a team can assign to a sender: yours, forwarder, unknown
// or spoofing. It returns an *InvalidError for anything else.
func ParseSenderClass(word string) (Class, error) {
	switch c := Class(word); c {
	case ClassYours, ClassForwarder, ClassUnknown, ClassSpoofing:
		return c, nil
	}
	return "", &InvalidError{Field: "class", Message: "The class must be yours, forwarder, unknown or spoofing."}
}

const (
	// MaxTeamSenders is how many senders a team may add.
	MaxTeamSenders = 200
	// MaxSenderClues is how many networks, hosts and domains each a sender may have.
	MaxSenderClues = 20
	maxSenderName  = 100
	// MaxSenderKey is the length of the longest key, which has the form base ":as:" domain.
	MaxSenderKey = 64 + len(":as:") + 253
	// Wider networks belong to many senders.
	minIPv4Bits, minIPv6Bits = 8, 32
)

// TeamSender is a sender that a team added or corrected. If the key belongs to a known sender or to
// an autonomous system, Name replaces its name, and the other fields are additional ways to
// recognize it.
type TeamSender struct {
	// Key is a-z, 0-9 and hyphens, or AS and a number.
	Key, Name string
	// Class is the class of the sender for all domains of the team that have not set their own; ""
	// means that it is derived from the reports.
	Class Class
	// Networks, Hosts and Domains are how the sender is recognized: by its address, by its host name,
	// and by a domain that passes DKIM or SPF. Hosts and Domains include the names below them.
	Networks       []netip.Prefix
	Hosts, Domains []string
}

// HasClues reports whether the sender can be recognized without a known key.
func (s TeamSender) HasClues() bool { return len(s.Networks)+len(s.Hosts)+len(s.Domains) > 0 }

var teamSenderKey = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$`)

// SystemNumber returns the number in the key of an autonomous system, such as AS64496, and reports
// whether the key is one.
func SystemNumber(key string) (uint32, bool) {
	digits, is := strings.CutPrefix(key, "AS")
	number, err := strconv.ParseUint(digits, 10, 32)
	return uint32(number), is && err == nil && number > 0 && digits[0] != '0'
}

// ParseSenderKey returns the canonical form of the key of a sender, as lists show it:
//
//	key     = base / base ":" part / network
//	base    = key of a sender of the catalogue or of the team / "AS" number / "-"
//	part    = "yours" / "forwarding" / "others" / "rest" / "as:" domain
//	network = an address, or a network of at least /8 for IPv4 and /32 for IPv6
//
// The base "-" is all unknown networks. It returns an *InvalidError for anything else.
func ParseSenderKey(key string) (string, error) {
	if network, ok := SenderNetwork(key); ok {
		if network.IsSingleIP() {
			return network.Addr().String(), nil
		}
		return network.String(), nil
	}
	base, part, divided := strings.Cut(key, ":")
	if _, isSystem := SystemNumber(strings.ToUpper(base)); isSystem {
		base = strings.ToUpper(base)
	} else if base != "-" && !teamSenderKey.MatchString(base) {
		return "", errSenderKey
	}
	if !divided {
		return base, nil
	}
	if domain, is := strings.CutPrefix(part, "as:"); is {
		name, err := ParseName(domain)
		if err != nil {
			return "", errSenderKey
		}
		part = "as:" + name
	} else if !slices.Contains([]string{"yours", "forwarding", "others", "rest"}, part) {
		return "", errSenderKey
	}
	return base + ":" + part, nil
}

var errSenderKey = &InvalidError{Field: "key", Message: fmt.Sprintf("The key of a sender is one that a list of senders shows, such as sendgrid or AS64496:yours, "+
	"an address, or a network of at least /%d for IPv4 and /%d for IPv6.", minIPv4Bits, minIPv6Bits)}

// SenderBase returns the key of the catalogue, the team or the network that the key of a sender
// begins with, "" for an address or a network.
func SenderBase(key string) string {
	if _, ok := SenderNetwork(key); ok {
		return ""
	}
	base, _, _ := strings.Cut(key, ":")
	return base
}

// SenderNetwork parses the key of a sender that is an address or a network. It reports false for
// other keys.
func SenderNetwork(key string) (netip.Prefix, bool) { return parseSenderNetwork(key) }

// SenderDomain is what tells who sends as a domain, apart from its mail: the latest full check, 0 if
// there is none, and the classes that the team gave senders, by their keys.
type SenderDomain struct {
	ID      DomainID
	Name    string
	Check   CheckID
	Classes map[string]Class
}

// ParseTeamSender validates a sender and returns it in its canonical form. networks are CIDR
// prefixes or addresses. It returns an *InvalidError for anything else.
func ParseTeamSender(s TeamSender, networks []string) (TeamSender, error) {
	s.Key, s.Name = strings.TrimSpace(s.Key), strings.TrimSpace(s.Name)
	_, isSystem := SystemNumber(strings.ToUpper(s.Key))
	if isSystem {
		s.Key = strings.ToUpper(s.Key)
	}
	switch {
	case !isSystem && !teamSenderKey.MatchString(s.Key):
		return s, &InvalidError{Field: "key", Message: "The key of a sender consists of at most 64 lower-case letters, digits and hyphens, such as our-crm."}
	case s.Name == "" || utf8.RuneCountInString(s.Name) > maxSenderName || !utf8.ValidString(s.Name) ||
		strings.ContainsFunc(s.Name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return s, &InvalidError{Field: "name", Message: fmt.Sprintf("The name of a sender must have 1 to %d printable characters.", maxSenderName)}
	case !slices.Contains([]Class{"", ClassYours, ClassService, ClassForwarder, ClassUnknown, ClassSpoofing}, s.Class):
		return s, &InvalidError{Field: "class", Message: "The class must be yours, service, forwarder, unknown or spoofing."}
	}
	for field, list := range map[string]*[]string{"hosts": &s.Hosts, "domains": &s.Domains} {
		names, err := parseSenderNames(field, *list)
		if err != nil {
			return s, err
		}
		*list = names
	}
	var err error
	s.Networks, err = parseNetworks(networks)
	return s, err
}

var notInKey = regexp.MustCompile(`[^a-z0-9]+`)

// SenderKey returns a key for a sender with a name. Different names may have the same key.
func SenderKey(name string) string {
	key := notInKey.ReplaceAllString(strings.ToLower(name), "-")
	key = strings.Trim(key[:min(len(key), 60)], "-")
	return cmp.Or(key, "sender")
}

func parseSenderNames(field string, list []string) ([]string, error) {
	if len(list) > MaxSenderClues {
		return nil, tooManyClues(field)
	}
	names := make([]string, len(list))
	for i, written := range list {
		name, err := ParseName(written)
		if err != nil {
			return nil, &InvalidError{Field: field, Message: fmt.Sprintf("%q is not a domain name.", written)}
		}
		names[i] = name
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func parseNetworks(list []string) ([]netip.Prefix, error) {
	if len(list) > MaxSenderClues {
		return nil, tooManyClues("networks")
	}
	networks := make([]netip.Prefix, len(list))
	for i, written := range list {
		network, ok := parseSenderNetwork(strings.TrimSpace(written))
		if !ok {
			return nil, &InvalidError{Field: "networks", Message: fmt.Sprintf(
				"%q is not a network such as 192.0.2.0/24 or 2001:db8::/32, at least /%d for IPv4 and /%d for IPv6.", written, minIPv4Bits, minIPv6Bits)}
		}
		networks[i] = network
	}
	slices.SortFunc(networks, netip.Prefix.Compare)
	return slices.Compact(networks), nil
}

// parseSenderNetwork is parseNetwork for networks of a sender. It reports false for wider ones than the
// limits.
func parseSenderNetwork(text string) (netip.Prefix, bool) {
	network, ok := parseNetwork(text)
	least := minIPv6Bits
	if network.Addr().Is4() {
		least = minIPv4Bits
	}
	return network, ok && network.Bits() >= least
}

// parseNetwork parses a prefix or an address.
func parseNetwork(text string) (netip.Prefix, bool) {
	network, err := netip.ParsePrefix(text)
	if err != nil {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" {
			return netip.Prefix{}, false
		}
		addr = addr.Unmap()
		network = netip.PrefixFrom(addr, addr.BitLen())
	}
	return network.Masked(), !network.Addr().Is4In6()
}

func tooManyClues(field string) error {
	return &InvalidError{Field: field, Message: fmt.Sprintf("A sender has at most %d %s.", MaxSenderClues, field)}
}
