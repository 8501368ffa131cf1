package truth

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd/internal/senders/mmdb"
)

// origin is a network that mail comes from. Its IPv4 addresses are in 198.18.0.0/15, its IPv6
// addresses in 2001:db8::/32.
type origin struct {
	// base is the key of the sender that the daemon recognizes: of the catalogue, or that of the
	// autonomous system.
	base string
	// system is the number of the autonomous system, 0 for none.
	system uint32
	name   string
	v4, v6 netip.Prefix
	// domain is one that mail of the sender passes SPF or DKIM with, "" for networks.
	domain string
	// host is the suffix of the confirmed host names, if only they tell whose addresses these are.
	host string
}

// Addresses of ordinary networks up to unnamed belong to one domain at a time, those above to one
// host name.
const (
	unnamed   = 1023
	maxDomain = 1500 // domains that have names of their own
	perDomain = 8    // names of a domain
)

// ordinary are networks in which anyone rents servers.
var ordinary = networks(12, 64496, 0, 21)

// remote are networks in which the planted domains have no servers.
var remote = networks(20, 65536, 128, 24)

// unrouted are addresses that the database of networks does not have.
var unrouted = origin{base: "-", v4: netip.MustParsePrefix("198.19.240.0/20")}

// wide is a network that some SPF records list as a whole.
var wide = origin{base: "AS64511", system: 64511, name: "Network 64511", v4: netip.MustParsePrefix("198.19.160.0/19")}

// networks returns networks of n systems, with IPv4 networks from 198.18.third.0 on.
func networks(n int, system uint32, third, bits int) []origin {
	all := make([]origin, n)
	for i := range all {
		number := system + uint32(i)
		size := 1 << (24 - bits)
		all[i] = origin{
			base: fmt.Sprintf("AS%d", number), system: number, name: fmt.Sprintf("Network %d", number),
			v4: netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18, byte(third + i*size), 0}), bits),
			v6: netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, byte(third + i)}), 40),
		}
	}
	return all
}

// The senders of the catalogue that are planted: by autonomous system, if it has one there.
var (
	services = known(0,
		origin{base: "sendgrid", system: 11377, domain: "sendgrid.net"},
		origin{base: "mailgun", system: 396479, domain: "mailgun.org"},
		origin{base: "sparkpost", system: 23528, domain: "sparkpostmail.com"},
		origin{base: "mailchimp", system: 14782, domain: "mcsv.net"},
		origin{base: "brevo", system: 200484, domain: "sendinblue.com"},
		origin{base: "emarsys", system: 43511, domain: "emarsys.net"},
		origin{base: "salesforce", system: 14340, domain: "salesforce.com"},
		origin{base: "zendesk", system: 21880, domain: "zendesk.com"},
	)
	providers = known(10,
		origin{base: "google", system: 15169, domain: "gmail.com"},
		origin{base: "zoho-mail", system: 2639, domain: "zohomail.com"},
		origin{base: "fastmail", system: 151847, domain: "messagingengine.com"},
		origin{base: "yahoo", system: 10310, domain: "yahoo.com"},
		origin{base: "mailbox-org", system: 199118, domain: "mailbox.org"},
	)
	gateways = known(20,
		origin{base: "proofpoint", system: 13916, domain: "pphosted.com"},
		origin{base: "mimecast", system: 30031, domain: "mimecast.com"},
	)
	hosting = known(30,
		origin{base: "one-com", system: 51468, domain: "one.com"},
		origin{base: "hostpoint", system: 29097, domain: "hostpoint.ch"},
		origin{base: "mxroute", system: 398810, domain: "mxroute.com"},
	)
	// relays are forwarders and lists, which send from networks of others.
	relays = known(40,
		origin{base: "forward-email", domain: "forwardemail.net"},
		origin{base: "improvmx", domain: "improvmx.com"},
		origin{base: "groups-io", domain: "groups.io"},
		origin{base: "google-groups", system: 15169, domain: "googlegroups.com"},
		origin{base: "ietf", domain: "ietf.org"},
	)
	// microsoft is recognized by its host names: its autonomous system has other customers.
	microsoft = known(50, origin{base: "microsoft-365", system: 8075, domain: "outlook.com", host: "outbound.protection.outlook.com"})[0]
)

// microsoftHosts is how many addresses microsoft has.
const microsoftHosts = 24

// known gives each sender a network of IPv4 addresses.
func known(third int, all ...origin) []origin {
	for i := range all {
		all[i].name = all[i].base
		all[i].v4 = netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 19, byte(third + i), 0}), 24)
	}
	return all
}

// routed returns all networks that the database of networks has.
func routed() []origin {
	all := slices.Concat(ordinary, remote, services, providers, gateways, hosting, relays)
	all = append(all, wide, microsoft)
	return slices.DeleteFunc(all, func(p origin) bool { return p.system == 0 })
}

// WriteNetworks writes the database of networks of all planted mail.
func WriteNetworks(w io.Writer) error {
	options := mmdb.Options{Type: "truth", Description: "Networks of planted mail", Built: time.Unix(0, 0)}
	return mmdb.Write(w, options, func(yield func(mmdb.Range, error) bool) {
		for _, p := range routed() {
			for _, prefix := range []netip.Prefix{p.v4, p.v6} {
				if prefix.IsValid() && !yield(mmdb.Range{First: prefix.Addr(), Last: last(prefix), Number: p.system, Name: p.name}, nil) {
					return
				}
			}
		}
	})
}

// last returns the last address of a network.
func last(prefix netip.Prefix) netip.Addr {
	octets := prefix.Addr().AsSlice()
	for bit := prefix.Bits(); bit < prefix.Addr().BitLen(); bit++ {
		octets[bit/8] |= 0x80 >> (bit % 8)
	}
	addr, _ := netip.AddrFromSlice(octets)
	return addr
}

// at returns the IPv4 address with a number in the network.
func (p origin) at(n int) netip.Addr {
	octets := p.v4.Addr().As4()
	binary.BigEndian.PutUint32(octets[:], binary.BigEndian.Uint32(octets[:])+uint32(n))
	return netip.AddrFrom4(octets)
}

// host is an address with its name.
type host struct {
	addr netip.Addr
	name string
	// forged means that the name does not resolve to the address.
	forged bool
}

// zone returns the records of the host.
func (h host) zone() string {
	lines := fmt.Sprintf("%s PTR %s.\n", Pointer(h.addr), h.name)
	kind := "A"
	if h.addr.Is6() {
		kind = "AAAA"
	}
	if !h.forged {
		lines += fmt.Sprintf("%s. %s %s\n", h.name, kind, h.addr)
	}
	return lines
}

// Pointer returns the name of the PTR record of an address.
func Pointer(addr netip.Addr) string {
	var labels []string
	for _, octet := range slices.Backward(addr.AsSlice()) {
		if addr.Is4() {
			labels = append(labels, fmt.Sprint(octet))
		} else {
			labels = append(labels, fmt.Sprintf("%x.%x", octet&0xf, octet>>4))
		}
	}
	if addr.Is4() {
		return strings.Join(labels, ".") + ".in-addr.arpa."
	}
	return strings.Join(labels, ".") + ".ip6.arpa."
}

// sharedHosts are the hosts whose names belong to no planted domain.
func sharedHosts() []host {
	var all []host
	for i := range microsoftHosts {
		all = append(all, host{addr: microsoft.at(i + 1), name: fmt.Sprintf("mail-%d.%s", i+1, microsoft.host)})
	}
	return all
}

// SharedZone returns the DNS records that belong to no planted domain: names of hosts, and the SPF
// records that customers of a service include.
func SharedZone() string {
	var b strings.Builder
	for _, h := range sharedHosts() {
		b.WriteString(h.zone())
	}
	for _, p := range slices.Concat(services, providers, gateways, hosting, []origin{microsoft}) {
		fmt.Fprintf(&b, "%s. TXT \"v=spf1 ip4:%s -all\"\n", p.include(), p.v4)
	}
	return b.String()
}

// include returns the name that customers include in their SPF records.
func (p origin) include() string { return "_spf." + p.domain }
