package demo

import (
	"io"
	"net/netip"
	"strings"

	"github.com/dmarcd/dmarcd/internal/senders"
	"github.com/dmarcd/dmarcd/internal/senders/mmdb"
)

// WriteNetworks writes the network and country database of the scenario, for a
// senders.Atlas.
func (s *Scenario) WriteNetworks(w io.Writer) error {
	options := mmdb.Options{Type: "dmarcd-Demo", Description: "Invented networks.", Built: s.today}
	return mmdb.Write(w, options, func(yield func(mmdb.Range, error) bool) {
		for _, h := range mailNetworks {
			for _, p := range []netip.Prefix{h.v4, h.v6} {
				if p.IsValid() && !yield(mmdb.Range{First: p.Addr(), Last: last(p), Number: h.number, Name: h.network, Country: h.country}, nil) {
					return
				}
			}
		}
	})
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

// Senders returns the well-known services of the scenario, for a senders.Catalogue.
func (s *Scenario) Senders() []senders.Sender {
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
