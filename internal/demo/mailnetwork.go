package demo

import (
	"fmt"
	"net/netip"

	"github.com/dmarcd/dmarcd/internal/senders"
)

// mailNetwork is an organization of the scenario with sending hosts, and their network.
type mailNetwork struct {
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

// The mail networks. Those without a domain send spoofed mail.
var (
	harbourlightOffice = &mailNetwork{network: "Harbourlight Shipping", number: 64496, country: "GB", v4: prefix("192.0.2.0/28"), v6: prefix("2001:db8:10::/48"), hosts: 3, domain: "harbourlight.example", label: "mail"}
	tinwhistleOffice   = &mailNetwork{network: "Tinwhistle Office Fibre", number: 64497, country: "IE", v4: prefix("192.0.2.16/28"), hosts: 2, domain: "tinwhistle.example", label: "mail"}
	brightpayOffice    = &mailNetwork{network: "Brightpay Data Centre", number: 64498, country: "DE", v4: prefix("192.0.2.32/28"), v6: prefix("2001:db8:30::/48"), hosts: 3, domain: "brightpay.example", label: "mail"}
	fernleaCampus      = &mailNetwork{network: "Fernlea Campus Network", number: 64499, country: "NZ", v4: prefix("192.0.2.48/28"), hosts: 2, domain: "fernlea.example", label: "mail"}

	cloudpost = &mailNetwork{network: "Cloudpost Mail Hosting", number: 64500, country: "US", v4: prefix("198.51.100.0/26"), v6: prefix("2001:db8:100::/48"), hosts: 18, domain: "cloudpost.example", label: "out", category: senders.Mailboxes, split: true}
	sendwell  = &mailNetwork{network: "Sendwell Newsletters", number: 64501, country: "NL", v4: prefix("198.51.100.64/27"), hosts: 8, domain: "sendwell.example", label: "mta", category: senders.Marketing}
	receiptly = &mailNetwork{network: "Receiptly", number: 64502, country: "US", v4: prefix("198.51.100.96/27"), hosts: 6, domain: "receiptly.example", label: "smtp", category: senders.Transactional}
	deskhelp  = &mailNetwork{network: "Deskhelp Support Software", number: 64503, country: "IE", v4: prefix("198.51.100.128/27"), hosts: 4, domain: "deskhelp.example", label: "outbound", category: senders.CRM, split: true}
	listhaven = &mailNetwork{network: "Listhaven Mailing Lists", number: 64504, country: "CA", v4: prefix("198.51.100.160/28"), hosts: 3, domain: "listhaven.example", label: "lists"}
	almaMail  = &mailNetwork{network: "Alma Forwarding", number: 64505, country: "GB", v4: prefix("198.51.100.176/28"), hosts: 3, domain: "alma-forwarding.example", label: "relay"}
	webstack  = &mailNetwork{network: "Webstack Shared Hosting", number: 64506, country: "FR", v4: prefix("198.51.100.192/26"), hosts: 2, domain: "webstack.example", label: "web", category: senders.Hosting, split: true}

	rentabox = &mailNetwork{network: "Rentabox Virtual Servers", number: 64507, country: "NL", v4: prefix("203.0.113.0/25"), hosts: 90}
	quickvps = &mailNetwork{network: "Quick VPS", number: 64508, country: "US", v4: prefix("203.0.113.128/25"), hosts: 90}
	cableOne = &mailNetwork{network: "Cable One Way", number: 64509, country: "BR", v4: prefix("198.18.0.0/18"), hosts: 700, domain: "cable-one-way.example", label: "cpe"}
	fibreTwo = &mailNetwork{network: "Fibre To Everybody", number: 64510, country: "IN", v4: prefix("198.18.64.0/18"), hosts: 600}
	mobile   = &mailNetwork{network: "Roaming Mobile", number: 64511, country: "ID", v4: prefix("198.18.128.0/17"), hosts: 500}
	homenet  = &mailNetwork{network: "Homenet Broadband", number: 65536, country: "US", v4: prefix("198.19.0.0/17"), hosts: 600, domain: "homenet.example", label: "dyn"}
	eastline = &mailNetwork{network: "Eastline Telecom", number: 65537, country: "VN", v4: prefix("198.19.128.0/17"), hosts: 500}
)

// spoofers send spoofed mail.
var spoofers = []*mailNetwork{rentabox, quickvps, cableOne, fibreTwo, mobile, homenet, eastline}

// mailNetworks are all of them.
var mailNetworks = append([]*mailNetwork{
	harbourlightOffice, tinwhistleOffice, brightpayOffice, fernleaCampus,
	cloudpost, sendwell, receiptly, deskhelp, listhaven, almaMail, webstack,
}, spoofers...)

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// address returns the address of a sending host, counted from 0. If the mailNetwork has
// both families, every third host uses IPv6.
func (h *mailNetwork) address(host int) netip.Addr {
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
func (h *mailNetwork) hostName(host int) string {
	if h.domain == "" {
		return ""
	}
	return fmt.Sprintf("%s%d.%s", h.label, host+1, h.domain)
}

// envelope is the envelope sender domain of the mailNetwork itself.
func (h *mailNetwork) envelope() string { return "bounces." + h.domain }

// exchange returns the host that takes mail: the last one of the network.
func (h *mailNetwork) exchange() (string, netip.Addr) {
	return "mx." + h.domain, last(h.v4).Prev()
}

// spfName is where the SPF record lies that others include.
func (h *mailNetwork) spfName() string { return "spf." + h.domain }

// spfName is where an SPF record lies, and whether it lists networks itself.
type spfName struct {
	name  string
	holds bool
}

// spfNames returns the names that an include of the mailNetwork's record queries, in
// order.
func (h *mailNetwork) spfNames() []spfName {
	if !h.split {
		return []spfName{{h.spfName(), true}}
	}
	// The networks are in the second of the two included records, so a sender late in a
	// long record is found late.
	return []spfName{{h.spfName(), false}, {"_a." + h.spfName(), false}, {"_b." + h.spfName(), true}}
}

// last returns the last address of a prefix.
func last(p netip.Prefix) netip.Addr {
	octets := p.Addr().AsSlice()
	for bit := p.Bits(); bit < 8*len(octets); bit++ {
		octets[bit/8] |= 0x80 >> (bit % 8)
	}
	addr, _ := netip.AddrFromSlice(octets) // as long as it was
	return addr
}
