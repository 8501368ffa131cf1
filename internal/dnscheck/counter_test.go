package dnscheck_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/resolver"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
)

// counter counts the queries that reach a resolver.
type counter struct {
	inner dns.Resolver
	asked atomic.Int64
}

func (c *counter) Resolve(ctx context.Context, q dns.Question) dns.Answer {
	c.asked.Add(1)
	return c.inner.Resolve(ctx, q)
}

func (c *counter) count() int { return int(c.asked.Load()) }

// ids returns the ids of the findings of a check.
func ids(check facts.Check) []string {
	var all []string
	for _, f := range check.Findings {
		all = append(all, f.ID)
	}
	return all
}

// typical is a domain with a provider for its mail, in master-file form.
const typical = `
example.com. SOA ns.example.com. admin.example.com. 1 7200 3600 1209600 300
example.com. NS ns.example.com.
example.com. MX 10 mx1.provider.example.
example.com. MX 20 mx2.provider.example.
mx1.provider.example. A 192.0.2.1
mx2.provider.example. A 192.0.2.2
example.com. TXT "v=spf1 mx include:spf.provider.example -all"
spf.provider.example. TXT "v=spf1 ip4:192.0.2.0/24 include:more.provider.example -all"
more.provider.example. TXT "v=spf1 ip4:198.51.100.0/24 -all"
_dmarc.example.com. TXT "v=DMARC1; p=quarantine; rua=mailto:dmarc@example.com"
selector1._domainkey.example.com. CNAME selector1.provider.example.
selector1.provider.example. TXT "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
`

// TestExamineOverRealMessages examines a domain by DNS messages over loopback.
func TestExamineOverRealMessages(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, typical)
	r := resolver.New(resolver.Config{Servers: []string{server.Addr()}})
	t.Cleanup(r.Close)
	check := dnscheck.New(dnscheck.Options{Resolver: r.Fresh(), Now: noon}).Examine(t.Context(), dnscheck.Request{Domain: "example.com"})
	if !check.Conclusive || check.Policy != "quarantine" || check.Grade == "" {
		t.Errorf("got conclusive=%t, policy %q, grade %q; want a graded check", check.Conclusive, check.Policy, check.Grade)
	}
	f := check.Facts
	if f.SPF.Lookups != 3 || len(f.MX.Hosts) != 2 || len(f.DKIM.Keys) != 1 {
		t.Errorf("got %d lookups, %d mail servers, %d keys; want 3, 2, 1", f.SPF.Lookups, len(f.MX.Hosts), len(f.DKIM.Keys))
	}
	const most = 100
	if got := server.Total(); got > most {
		t.Errorf("got %d questions, want at most %d", got, most)
	}
}

// BenchmarkExamine measures full checks over loopback, sequentially and in parallel. Each
// check uses another domain so that queries are not shared.
func BenchmarkExamine(b *testing.B) {
	const domains = 256
	var zone strings.Builder
	for i := range domains {
		zone.WriteString(strings.NewReplacer("example.com", nth(i), "provider.example", "p."+nth(i)).Replace(typical))
	}
	for _, parallelism := range []int{1, 16} {
		b.Run(fmt.Sprintf("%d for each core", parallelism), func(b *testing.B) {
			server := resolvertest.Start(b, zone.String())
			r := resolver.New(resolver.Config{Servers: []string{server.Addr()}})
			b.Cleanup(r.Close)
			checker := dnscheck.New(dnscheck.Options{Resolver: r.Fresh(), Now: time.Now})
			var next atomic.Int64
			b.ReportAllocs()
			b.SetParallelism(parallelism)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					checker.Examine(b.Context(), dnscheck.Request{Domain: nth(int(next.Add(1)) % domains)})
				}
			})
			b.ReportMetric(float64(server.Total())/float64(b.N), "questions/op")
		})
	}
}

func nth(i int) string { return fmt.Sprintf("d%d.test", i) }
