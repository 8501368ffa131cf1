package dmarc_test

import (
	"testing"

	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns/dnstest"
)

func BenchmarkParse(b *testing.B) {
	for _, bb := range []struct{ name, txt string }{
		{"typical", "v=DMARC1; p=reject; rua=mailto:dmarc@example.com"},
		{"full", "v=DMARC1; p=reject; sp=quarantine; np=reject; adkim=s; aspf=s; psd=n; t=y; rua=mailto:a@example.com,mailto:b@example.net; ruf=mailto:f@example.com; fo=1:d:s"},
		{"unrelated", "google-site-verification=0123456789abcdef"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				dmarc.Parse(bb.txt)
			}
		})
	}
}

func BenchmarkDiscover(b *testing.B) {
	const zone = `_dmarc.example.com TXT "v=DMARC1; p=none; sp=quarantine; np=reject; rua=mailto:a@example.com"`
	for _, bb := range []struct{ name, ask string }{
		{"own record", "example.com"},
		{"inherited", "www.example.com"},
		{"eight questions", "a.b.c.d.e.f.g.h.example.com"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			// The zone remembers every question: a new one in time keeps it small.
			z := dnstest.New(zone)
			for i := 0; b.Loop(); i++ {
				if i%1000 == 999 {
					z = dnstest.New(zone)
				}
				dmarc.Discover(b.Context(), z, bb.ask)
			}
		})
	}
}
