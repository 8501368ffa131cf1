package outbound

import (
	"net/netip"
	"slices"
)

// Permits reports whether connections to an address are allowed: it is public, or in a
// network of Allow. An IPv4-mapped IPv6 address is checked as IPv4. All other forms that
// embed an IPv4 address (NAT64, 6to4, Teredo, IPv4-compatible, IPv4-translated) are
// checked as IPv6, so allowing the IPv4 network does not allow them. Addresses with a zone
// are never allowed.
func (d *Dialer) Permits(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	a = a.Unmap()
	contains := func(p netip.Prefix) bool { return p.Contains(a) }
	if slices.ContainsFunc(d.Allow, contains) {
		return true
	}
	return !d.AllowedOnly && slices.ContainsFunc(public, contains) && !slices.ContainsFunc(special, contains)
}

// public is the unicast space: IPv4 without class D and E, and the global unicast part of
// IPv6 (RFC 4291 §2.4, IANA: 2000::/3).
var public = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/1"),
	netip.MustParsePrefix("128.0.0.0/2"),
	netip.MustParsePrefix("192.0.0.0/3"),
	netip.MustParsePrefix("2000::/3"),
}

// special lists the special-purpose addresses (RFC 6890, IANA) in the unicast space that
// are not globally reachable or lead to IPv4.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),        // this network
	netip.MustParsePrefix("10.0.0.0/8"),       // private
	netip.MustParsePrefix("100.64.0.0/10"),    // carrier-grade NAT
	netip.MustParsePrefix("127.0.0.0/8"),      // loopback
	netip.MustParsePrefix("168.63.129.16/32"), // the platform service of Azure
	netip.MustParsePrefix("169.254.0.0/16"),   // link-local
	netip.MustParsePrefix("172.16.0.0/12"),    // private
	netip.MustParsePrefix("192.0.0.0/24"),     // protocol assignments
	netip.MustParsePrefix("192.0.2.0/24"),     // documentation
	netip.MustParsePrefix("192.88.99.0/24"),   // 6to4 relays
	netip.MustParsePrefix("192.168.0.0/16"),   // private
	netip.MustParsePrefix("198.18.0.0/15"),    // benchmarking
	netip.MustParsePrefix("198.51.100.0/24"),  // documentation
	netip.MustParsePrefix("203.0.113.0/24"),   // documentation
	netip.MustParsePrefix("2001::/23"),        // protocol assignments, Teredo, ORCHID
	netip.MustParsePrefix("2001:db8::/32"),    // documentation
	netip.MustParsePrefix("2002::/16"),        // 6to4
	netip.MustParsePrefix("3fff::/20"),        // documentation
}
