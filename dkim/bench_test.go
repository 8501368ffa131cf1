package dkim_test

import (
	"testing"

	"github.com/dmarcd/dmarcd/dkim"
)

func BenchmarkParseKey(b *testing.B) {
	for _, bb := range []struct{ name, txt string }{
		{"rsa", "v=DKIM1; k=rsa; p=" + rsaKey(b, 2048)},
		{"ed25519", "v=DKIM1; k=ed25519; p=" + exampleEd25519},
		{"unrelated", "v=spf1 include:_spf.example.com -all"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				dkim.ParseKey(bb.txt)
			}
		})
	}
}
