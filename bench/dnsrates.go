package main

import (
	"context"
	"errors"
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
func measureCreate(ctx context.Context, s settings, d *daemon) ([]figure, error) {
	if err := d.dns.Set(zone(1000)); err != nil {
		return nil, err
	}
	rate, err := load(ctx, d.address, s.clients, time.Duration(s.rounds)*s.duration, http.StatusCreated, func(n int64) []byte {
		return request(http.MethodPost, "/api/domains", d.token, fmt.Sprintf(`{"domain":"%s"}`, domainName(int(n))))
	})
	return []figure{{"`POST /domains` with DNS answering from loopback", fmt.Sprintf("%.0f/s", rate), ""}}, err
}

// measureVerify verifies domains, against the DNS library asking the same number
// of questions and doing nothing else.
func measureVerify(ctx context.Context, s settings, d *daemon) ([]figure, error) {
	const domains = 1000
	if err := d.dns.Set(zone(domains)); err != nil {
		return nil, err
	}
	if err := addDomains(ctx, d, domains); err != nil {
		return nil, err
	}
	before := d.dns.Total()
	var verified atomic.Int64
	verify := func() (float64, error) {
		return load(ctx, d.address, s.clients, s.duration, http.StatusOK, func(n int64) []byte {
			verified.Add(1)
			return request(http.MethodPost, "/api/domains/"+domainName(int(n%domains))+"/verify", d.token, "")
		})
	}
	if _, err := verify(); err != nil { // to learn how many questions one takes
		return nil, err
	}
	questions := int(float64(d.dns.Total()-before)/float64(verified.Load()) + 0.5)
	ours, alone, share, err := compare(s.rounds, verify, func() (float64, error) {
		return askAlone(ctx, s, d.dns.Addr(), questions, domains)
	})
	return []figure{{
		fmt.Sprintf("`POST /domains/{domain}/verify` (%d questions each) as a share of the DNS library asking alone", questions),
		fmt.Sprintf("%.2f (%.0f/s of %.0f/s)", share, ours, alone), "",
	}}, err
}

// askAlone returns how many times a second the library asks that many questions,
// one after the other as a tree walk does, on as many connections as the load
// has.
func askAlone(ctx context.Context, s settings, server string, questions, domains int) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.duration)
	defer cancel()
	var rounds atomic.Int64
	errs := make(chan error, s.clients)
	began := time.Now()
	for range s.clients {
		go func() {
			client := &miekg.Client{Timeout: 5 * time.Second}
			for n := 0; ctx.Err() == nil; n++ {
				for range questions {
					message := new(miekg.Msg).SetQuestion("_dmarc."+domainName(n%domains)+".", miekg.TypeTXT)
					if _, _, err := client.Exchange(message, server); err != nil {
						errs <- err
						return
					}
				}
				rounds.Add(1)
			}
			errs <- nil
		}()
	}
	var all []error
	for range s.clients {
		all = append(all, <-errs)
	}
	return float64(rounds.Load()) / time.Since(began).Seconds(), errors.Join(all...)
}
