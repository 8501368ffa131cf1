package demo

import (
	"fmt"
	"net/netip"

	"github.com/dmarcd/dmarcd/internal/senders"
)

// house is an organisation of the story with hosts that send mail, and the network
// they are in.
type house struct {
	network string // its name
	number  uint32 // of the autonomous system
	country string
	v4, v6  netip.Prefix // v6 may be missing
	hosts   int          // how many of its addresses send mail
	// domain is where the names of its hosts are, "" where they have none.
	domain string
	label  string // what the names of its hosts begin with
	// category is set where the catalogue knows the sender.
	category senders.Category
	// split says that its SPF record leads to two others, as those of big senders do.
	split bool
}

// The houses. Those without a domain are where spoofed mail comes from.
var (
	harbourlightOffice = &house{network: "Harbourlight Shipping", number: 64496, country: "GB", v4: prefix("192.0.2.0/28"), v6: prefix("2001:db8:10::/48"), hosts: 3, domain: "harbourlight.example", label: "mail"}
	tinwhistleOffice   = &house{network: "Tinwhistle Office Fibre", number: 64497, country: "IE", v4: prefix("192.0.2.16/28"), hosts: 2, domain: "tinwhistle.example", label: "mail"}
	brightpayOffice    = &house{network: "Brightpay Data Centre", number: 64498, country: "DE", v4: prefix("192.0.2.32/28"), v6: prefix("2001:db8:30::/48"), hosts: 3, domain: "brightpay.example", label: "mail"}
	fernleaCampus      = &house{network: "Fernlea Campus Network", number: 64499, country: "NZ", v4: prefix("192.0.2.48/28"), hosts: 2, domain: "fernlea.example", label: "mail"}

	cloudpost = &house{network: "Cloudpost Mail Hosting", number: 64500, country: "US", v4: prefix("198.51.100.0/26"), v6: prefix("2001:db8:100::/48"), hosts: 18, domain: "cloudpost.example", label: "out", category: senders.Mailboxes, split: true}
	sendwell  = &house{network: "Sendwell Newsletters", number: 64501, country: "NL", v4: prefix("198.51.100.64/27"), hosts: 8, domain: "sendwell.example", label: "mta", category: senders.Marketing}
	receiptly = &house{network: "Receiptly", number: 64502, country: "US", v4: prefix("198.51.100.96/27"), hosts: 6, domain: "receiptly.example", label: "smtp", category: senders.Transactional}
	deskhelp  = &house{network: "Deskhelp Support Software", number: 64503, country: "IE", v4: prefix("198.51.100.128/27"), hosts: 4, domain: "deskhelp.example", label: "outbound", category: senders.CRM, split: true}
	listhaven = &house{network: "Listhaven Mailing Lists", number: 64504, country: "CA", v4: prefix("198.51.100.160/28"), hosts: 3, domain: "listhaven.example", label: "lists"}
	almaMail  = &house{network: "Alma Forwarding", number: 64505, country: "GB", v4: prefix("198.51.100.176/28"), hosts: 3, domain: "alma-forwarding.example", label: "relay"}
	webstack  = &house{network: "Webstack Shared Hosting", number: 64506, country: "FR", v4: prefix("198.51.100.192/26"), hosts: 2, domain: "webstack.example", label: "web", category: senders.Hosting, split: true}

	rentabox = &house{network: "Rentabox Virtual Servers", number: 64507, country: "NL", v4: prefix("203.0.113.0/25"), hosts: 90}
	quickvps = &house{network: "Quick VPS", number: 64508, country: "US", v4: prefix("203.0.113.128/25"), hosts: 90}
	cableOne = &house{network: "Cable One Way", number: 64509, country: "BR", v4: prefix("198.18.0.0/18"), hosts: 700, domain: "cable-one-way.example", label: "cpe"}
	fibreTwo = &house{network: "Fibre To Everybody", number: 64510, country: "IN", v4: prefix("198.18.64.0/18"), hosts: 600}
	mobile   = &house{network: "Roaming Mobile", number: 64511, country: "ID", v4: prefix("198.18.128.0/17"), hosts: 500}
	homenet  = &house{network: "Homenet Broadband", number: 65536, country: "US", v4: prefix("198.19.0.0/17"), hosts: 600, domain: "homenet.example", label: "dyn"}
	eastline = &house{network: "Eastline Telecom", number: 65537, country: "VN", v4: prefix("198.19.128.0/17"), hosts: 500}
)

// spoofers is where spoofed mail comes from.
var spoofers = []*house{rentabox, quickvps, cableOne, fibreTwo, mobile, homenet, eastline}

// houses are all of them.
var houses = append([]*house{
	harbourlightOffice, tinwhistleOffice, brightpayOffice, fernleaCampus,
	cloudpost, sendwell, receiptly, deskhelp, listhaven, almaMail, webstack,
}, spoofers...)

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// address returns the address of a sending host, counted from 0. Where the house has
// both, every third host speaks IPv6.
func (h *house) address(host int) netip.Addr {
	if h.v6.IsValid() && host%3 == 2 {
		return offset(h.v6.Addr(), host+1)
	}
	if h.hosts < 64 {
		return offset(h.v4.Addr(), host+1)
	}
	// The many are spread over the whole network. The factor is odd and the size a
	// power of two, so that no two hosts meet.
	const factor = 40503
	size := 1 << (32 - h.v4.Bits())
	return offset(h.v4.Addr(), host*factor%size)
}

// offset returns the address that lies so far behind another one.
func offset(addr netip.Addr, by int) netip.Addr {
	octets := addr.AsSlice()
	for i := len(octets) - 1; by > 0; i-- {
		by += int(octets[i])
		octets[i] = byte(by & 0xff)
		by >>= 8
	}
	moved, _ := netip.AddrFromSlice(octets) // as long as it was
	return moved
}

// hostName returns the name of a sending host, "" where it has none.
func (h *house) hostName(host int) string {
	if h.domain == "" {
		return ""
	}
	return fmt.Sprintf("%s%d.%s", h.label, host+1, h.domain)
}

// envelope is the domain of the envelope sender that a house uses for itself.
func (h *house) envelope() string { return "bounces." + h.domain }

// exchange returns the host that takes mail: the last one of the network.
func (h *house) exchange() (string, netip.Addr) {
	return "mx." + h.domain, last(h.v4).Prev()
}

// spfName is where the SPF record lies that others include.
func (h *house) spfName() string { return "spf." + h.domain }

// spfName is where an SPF record lies, and whether it lists networks itself.
type spfName struct {
	name  string
	holds bool
}

// spfNames returns the names that an include of the house's record asks for, in
// their order.
func (h *house) spfNames() []spfName {
	if !h.split {
		return []spfName{{h.spfName(), true}}
	}
	// The networks are in the second of the two records that the first leads to: a
	// sender that comes late in a long record is found late.
	return []spfName{{h.spfName(), false}, {"_a." + h.spfName(), false}, {"_b." + h.spfName(), true}}
}
