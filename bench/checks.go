package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
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
func measureChecks(ctx context.Context, s settings, e engine) ([]figure, error) {
	if e.name() != "SQLite" {
		return nil, nil // once is enough
	}
	server, err := resolvertest.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer server.Close()
	if err := server.Set(checkZone()); err != nil {
		return nil, err
	}
	client := resolver.New(resolver.Config{Servers: []string{server.Addr()}, Timeout: 5 * time.Second})
	defer client.Close()
	checker := dnscheck.New(dnscheck.Options{Resolver: client.Fresh(), Now: time.Now})
	var made atomic.Int64
	before := server.Total()
	check := func() (float64, error) {
		return repeat(ctx, s, func(n int) error {
			result := checker.Examine(ctx, dnscheck.Request{Domain: domainName(n % checkDomains)})
			if !result.Conclusive {
				return errors.New("inconclusive: " + result.Reason)
			}
			made.Add(1)
			return nil
		})
	}
	if _, err := check(); err != nil { // to learn how many questions one takes
		return nil, err
	}
	questions := int(float64(server.Total()-before)/float64(made.Load()) + 0.5)
	ours, alone, share, err := compare(s.rounds, check, func() (float64, error) {
		return askAlone(ctx, s, server.Addr(), questions, checkDomains)
	})
	return []figure{{
		fmt.Sprintf("full checks (%d questions each) as a share of the DNS library asking alone", questions),
		fmt.Sprintf("%.2f (%.0f/s of %.0f/s)", share, ours, alone), "at least 0.5",
	}}, err
}

// repeat runs f over and over on several goroutines for a while and returns how
// often in a second.
func repeat(ctx context.Context, s settings, f func(n int) error) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.duration)
	defer cancel()
	var done atomic.Int64
	var group sync.WaitGroup
	errs := make([]error, s.clients)
	began := time.Now()
	for client := range s.clients {
		group.Go(func() {
			for n := client; ctx.Err() == nil; n += s.clients {
				if errs[client] = f(n); errs[client] != nil {
					return
				}
				done.Add(1)
			}
		})
	}
	group.Wait()
	return float64(done.Load()) / time.Since(began).Seconds(), errors.Join(errs...)
}
