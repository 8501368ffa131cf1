package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	miekg "github.com/miekg/dns"
)

// zone gives every domain of the benchmark a record. A verification walks the
// tree from the domain up: four questions.
func zone(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "_dmarc.%s. TXT \"v=DMARC1; p=reject; rua=mailto:reports@bench.example\"\n", domainName(i))
	}
	return text.String()
}

// measureCreate adds domains, each with a DNS check inside the request.
func measureCreate(ctx context.Context, s settings, d *daemon) []figure {
	must(d.dns.Set(zone(1000)))
	rate := load(ctx, d.address, s.clients, time.Duration(s.rounds)*s.duration, http.StatusCreated, func(n int) []byte {
		return request(http.MethodPost, "/api/domains", d.token, fmt.Sprintf(`{"domain":"%s"}`, domainName(n)))
	})
	return []figure{{"`POST /domains` with DNS answering from loopback", fmt.Sprintf("%.0f/s", rate), ""}}
}

// measureVerify verifies domains, against the DNS library asking the same number
// of questions and doing nothing else.
func measureVerify(ctx context.Context, s settings, d *daemon) []figure {
	const domains = 1000
	must(d.dns.Set(zone(domains)))
	addDomains(ctx, d, domains)
	before := d.dns.Total()
	var verified atomic.Int64
	verify := func() float64 {
		return load(ctx, d.address, s.clients, s.duration, http.StatusOK, func(n int) []byte {
			verified.Add(1)
			return request(http.MethodPost, "/api/domains/"+domainName(n%domains)+"/verify", d.token, "")
		})
	}
	verify() // to learn how many questions one takes
	questions := int(float64(d.dns.Total()-before)/float64(verified.Load()) + 0.5)
	ours, alone, share := compare(s.rounds, verify, func() float64 {
		return askAlone(ctx, s, d.dns.Addr(), questions, domains)
	})
	return []figure{{
		fmt.Sprintf("`POST /domains/{domain}/verify` (%d questions each) as a share of the DNS library asking alone", questions),
		fmt.Sprintf("%.2f (%.0f/s of %.0f/s)", share, ours, alone), "",
	}}
}

// askAlone returns how many times a second the library asks that many questions,
// one after the other as a tree walk does, with as many clients as the load has.
func askAlone(ctx context.Context, s settings, server string, questions, domains int) float64 {
	client := &miekg.Client{Timeout: 5 * time.Second}
	return repeat(ctx, s.clients, s.duration, func(_, n int) error {
		for range questions {
			message := new(miekg.Msg).SetQuestion("_dmarc."+domainName(n%domains)+".", miekg.TypeTXT)
			if _, _, err := client.Exchange(message, server); err != nil {
				return err
			}
		}
		return nil
	})
}
