package spf_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/spf"
)

// answers is a resolver that does nothing but look up: the benchmarks measure
// this package.
type answers map[dns.Question][]dns.Record

func (a answers) Resolve(_ context.Context, q dns.Question) dns.Answer {
	records, found := a[q]
	if !found {
		return dns.Answer{Question: q, Outcome: dns.NoSuchName}
	}
	return dns.Answer{Question: q, Outcome: dns.Data, Records: records}
}

// company is the DNS of a domain with three providers and its own exchangers.
func company() answers {
	a := make(answers)
	text := func(name, record string) {
		q := dns.Question{Name: name, Type: dns.TXT}
		a[q] = []dns.Record{{Name: name, Type: dns.TXT, Text: []string{record}}}
	}
	text("example.com", "v=spf1 mx include:_spf.a.example include:_spf.b.example ip4:203.0.113.0/28 -all")
	text("_spf.a.example", "v=spf1 include:_net1.a.example include:_net2.a.example ~all")
	text("_net1.a.example", "v=spf1"+strings.Repeat(" ip4:198.51.100.0/24 ip6:2001:db8:a::/48", 8)+" ~all")
	text("_net2.a.example", "v=spf1 ip4:198.51.100.128/25 ip6:2001:db8:b::/48 ~all")
	text("_spf.b.example", "v=spf1 ip4:192.0.2.0/24 -all")
	a[dns.Question{Name: "example.com", Type: dns.MX}] = []dns.Record{{Host: "mx.example.com"}}
	a[dns.Question{Name: "mx.example.com", Type: dns.A}] = []dns.Record{{Addr: netip.MustParseAddr("203.0.113.77")}}
	return a
}

func BenchmarkParse(b *testing.B) {
	const record = "v=spf1 mx include:_spf.a.example include:_spf.b.example ip4:203.0.113.0/28 -all"
	for b.Loop() {
		if _, err := spf.Parse(record); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseHostile(b *testing.B) {
	record := "v=spf1" + strings.Repeat(" a", 30_000)
	for b.Loop() {
		if _, err := spf.Parse(record); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	zone := company()
	id := spf.Identity{IP: netip.MustParseAddr("192.0.2.1"), MailFrom: "user@example.com"}
	for b.Loop() {
		if v := spf.Check(context.Background(), zone, id); v.Result != spf.Pass {
			b.Fatal(v)
		}
	}
}

func BenchmarkExplain(b *testing.B) {
	zone := company()
	for b.Loop() {
		if x := spf.Explain(context.Background(), zone, "example.com", spf.Limits{}); x.Lookups != 5 {
			b.Fatal(x)
		}
	}
}
