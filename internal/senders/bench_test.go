package senders_test

import (
	"net/netip"
	"testing"

	"github.com/dmarcd/dmarcd/internal/senders"
)

func BenchmarkLocate(b *testing.B) {
	path := writeDatabase(b, "Test", "both.mmdb")
	atlas := openAtlas(b, senders.Files{Networks: path, Countries: path})
	for _, addr := range []string{"192.0.2.1", "2001:db8::25", "8.8.8.8"} {
		b.Run(addr, func(b *testing.B) {
			b.ReportAllocs()
			a := netip.MustParseAddr(addr)
			for b.Loop() {
				atlas.Locate(a)
			}
		})
	}
}

func BenchmarkIdentify(b *testing.B) {
	catalogue := senders.NewCatalogue(senders.Known())
	for name, clues := range map[string]senders.Clues{
		"host":    {Host: "a48-117.smtp-out.amazonses.com"},
		"network": {Host: "unknown.example", Network: 11377},
		"unknown": {Host: "mail.customer.example", Network: 64496, Domains: []string{"customer.example"}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				catalogue.Identify(clues)
			}
		})
	}
}
