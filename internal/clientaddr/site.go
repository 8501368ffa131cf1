package clientaddr

import "net/netip"

const (
	siteBits4 = 24
	siteBits6 = 48
)

// SiteOf returns the wider network that an address belongs to: the /24 of an IPv4
// address, the /48 of an IPv6 address, the zero value for no address. One sender easily
// has many addresses of it, so that shares are counted by it where senders compete.
func SiteOf(address netip.Addr) netip.Prefix {
	address = plain(address)
	bits := siteBits4
	if address.Is6() {
		bits = siteBits6
	}
	site, _ := address.Prefix(bits) // the zero value for the zero address
	return site
}
