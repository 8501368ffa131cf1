package dnscheck_test

import (
	"slices"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/corpustest"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
)

// TestCorpusWrongPosition runs the corpus cases with a record at the apex, which receivers
// never query.
func TestCorpusWrongPosition(t *testing.T) {
	t.Parallel()
	var table struct {
		Cases []struct {
			ID     string
			Apex   []string `json:"txt_at_apex"`
			Policy []string `json:"txt_at_dmarc"`
			Expect struct{ Error string }
		}
	}
	corpustest.Table(t, "*+checkdmarc/dmarc-lookup.json", &table)
	comparison := corpustest.Compare(t, nil)
	for _, c := range table.Cases {
		zone := dnstest.New("")
		for name, texts := range map[string][]string{"example.com": c.Apex, "_dmarc.example.com": c.Policy} {
			for _, text := range texts {
				zone.Add(dns.Record{Name: name, Type: dns.TXT, Text: []string{text}})
			}
		}
		checker := dnscheck.New(dnscheck.Options{Resolver: zone, Now: time.Now})
		check := checker.Examine(t.Context(), dnscheck.Request{Domain: "example.com"})
		got := slices.ContainsFunc(check.Findings, func(f dmarcd.Finding) bool { return f.ID == "dmarc.record_at_apex" })
		want := c.Expect.Error == "DMARCRecordInWrongLocation"
		comparison.Compare(c.ID, got == want, got, want)
	}
}
