package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/resolver"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
)

// checkDomains is how many domains the full checks go round.
const checkDomains = 200

// checkZone is a typical domain: a policy, SPF with two includes, one DKIM key,
// two mail servers, TLS reports.
func checkZone() string {
	const key = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE" // any octets: keys are not what is measured
	var zone strings.Builder
	for i := range checkDomains {
		name := domainName(i)
		fmt.Fprintf(&zone, `
%[1]s. MX 10 mx1.%[1]s.
%[1]s. MX 20 mx2.%[1]s.
%[1]s. A 192.0.2.1
%[1]s. TXT "v=spf1 include:_spf.one.example include:_spf.two.example -all"
_dmarc.%[1]s. TXT "v=DMARC1; p=reject; rua=mailto:dmarc@%[1]s"
_smtp._tls.%[1]s. TXT "v=TLSRPTv1; rua=mailto:tls@%[1]s"
google._domainkey.%[1]s. TXT "v=DKIM1; k=rsa; p=%[2]s"
mx1.%[1]s. A 192.0.2.2
mx2.%[1]s. A 192.0.2.3
`, name, key)
	}
	zone.WriteString("_spf.one.example. TXT \"v=spf1 ip4:192.0.2.0/24 -all\"\n_spf.two.example. TXT \"v=spf1 ip4:198.51.100.0/24 -all\"\n")
	return zone.String()
}

// measureChecks makes full checks, against the DNS library asking as many
// questions, as many at once, and doing nothing else. It needs no database.
func measureChecks(ctx context.Context, s settings, e engine) []figure {
	if e.name() != "SQLite" {
		return nil // once is enough
	}
	server := get(resolvertest.Listen("127.0.0.1:0"))
	defer server.Close()
	must(server.Set(checkZone()))
	client := resolver.New(resolver.Config{Servers: []string{server.Addr()}, Timeout: 5 * time.Second})
	defer client.Close()
	checker := dnscheck.New(dnscheck.Options{Resolver: client.Fresh(), Now: time.Now})
	var made atomic.Int64
	before := server.Total()
	check := func() float64 {
		return repeat(ctx, s.clients, s.duration, func(_, n int) error {
			result := checker.Examine(ctx, dnscheck.Request{Domain: domainName(n % checkDomains)})
			if !result.Conclusive {
				return errors.New("inconclusive: " + result.Reason)
			}
			made.Add(1)
			return nil
		})
	}
	check() // to learn how many questions one takes
	questions := int(float64(server.Total()-before)/float64(made.Load()) + 0.5)
	ours, alone, share := compare(s.rounds, check, func() float64 {
		return askAlone(ctx, s, server.Addr(), questions, checkDomains)
	})
	return []figure{{
		fmt.Sprintf("full checks (%d questions each) as a share of the DNS library asking alone", questions),
		fmt.Sprintf("%.2f (%.0f/s of %.0f/s)", share, ours, alone), "at least 0.5",
	}}
}
