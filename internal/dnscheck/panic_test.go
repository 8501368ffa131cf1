package dnscheck_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/recovered"
)

// faulty panics for some names, like a bug in a record parser.
type faulty string

func (f faulty) Resolve(_ context.Context, q dns.Question) dns.Answer {
	if strings.HasPrefix(q.Name, string(f)) {
		panic("odd record")
	}
	if q.Type == dns.TXT && q.Name == "example.com" {
		return dns.Answer{Question: q, Outcome: dns.Data, Records: []dns.Record{{Text: []string{"v=spf1 include:spf.example.com mx ?all"}}}}
	}
	if q.Type == dns.MX {
		return dns.Answer{Question: q, Outcome: dns.Data, Records: []dns.Record{{Preference: 1, Host: "mx1.example.com"}, {Preference: 2, Host: "mx2.example.com"}}}
	}
	return dns.Answer{Question: q, Outcome: dns.NoData}
}

// A panic in a goroutine of a check must reach the caller.
func TestPanicsOfACheckCanBeRecovered(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"_dmarc.", "mx1.", "spf.", "default._domainkey", "_smtp._tls.", "_mta-sts."} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				checker := dnscheck.New(dnscheck.Options{Resolver: faulty(name), Now: time.Now})
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // releases the waiting queries
				defer cancel()
				err := recovered.Boundary(nil).Call("check", func() error {
					checker.Examine(ctx, dnscheck.Request{Domain: "example.com", Selectors: []dnscheck.Selector{{Name: "default"}}})
					return nil
				})
				if !recovered.Is(err) {
					t.Errorf("got %v, want the panic", err)
				}
			})
		})
	}
}
