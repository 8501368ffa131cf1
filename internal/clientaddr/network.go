package clientaddr

import "net/netip"

const (
	networkBits4 = 24
	networkBits6 = 48
)

// Network returns the network of a client: the /24 of an IPv4 address, the /48 of an
// IPv6 address, the zero value for no address. What clients share is shared fairly by
// network, because one sender easily has many addresses of it.
func Network(client netip.Addr) netip.Prefix {
	client = plain(client)
	bits := networkBits4
	if client.Is6() {
		bits = networkBits6
	}
	network, err := client.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // there is no address
	}
	return network
}
