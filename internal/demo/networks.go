package demo

import (
	"net/netip"
	"strings"

	"github.com/dmarcd/dmarcd/internal/senders"
)

// Locate returns where an address of the scenario belongs to. All of them are reserved for
// documentation and tests: no mail comes from them.
func Locate(addr netip.Addr) (senders.Origin, bool) {
	for _, h := range mailNetworks {
		if h.v4.Contains(addr) || h.v6.IsValid() && h.v6.Contains(addr) {
			return senders.Origin{Network: senders.Network{Number: h.number, Name: h.network}, Country: h.country}, true
		}
	}
	return senders.Origin{}, false
}

// Senders returns the well-known services of the scenario, for a senders.Catalogue.
func Senders() []senders.Sender {
	var known []senders.Sender
	for _, h := range mailNetworks {
		if h.category != "" {
			known = append(known, senders.Sender{
				Key: strings.TrimSuffix(h.domain, ".example"), Name: h.network, Kind: senders.Service, Category: h.category,
				Networks: []uint32{h.number}, Hosts: []string{h.domain}, Domains: []string{h.domain}, AlignsSPF: true, AlignsDKIM: true,
				Setup: "Authenticate the domain in " + h.network + " and publish the DKIM record and the return-path record that it shows.",
			})
		}
	}
	return known
}
