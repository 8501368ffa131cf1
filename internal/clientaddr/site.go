package clientaddr

import "net/netip"

const (
	siteBits4 = 24
	siteBits6 = 48
)

// SiteOf returns the wider network of an address: the /24 of an IPv4 address, the /48 of
// an IPv6 address, zero for no address. One sender can easily have many addresses of it,
// so it is the unit of fairness between senders.
func SiteOf(address netip.Addr) netip.Prefix {
	address = plain(address)
	bits := siteBits4
	if address.Is6() {
		bits = siteBits6
	}
	site, _ := address.Prefix(bits) // the zero value for the zero address
	return site
}
