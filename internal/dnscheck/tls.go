package dnscheck

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"time"

	"github.com/dmarcd/dmarcd/dane"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/mtasts"
)

// maxProbed limits the mail servers of a domain that are connected to.
const maxProbed = 3

// checkDANE looks up the TLSA records of the MX hosts and reads the certificates of the most
// preferred ones.
func (e *examination) checkDANE(ctx context.Context) {
	found := dane.Lookup(ctx, e.dns, e.Domain)
	f := &e.facts.DANE
	f.Status, f.Reason = found.Status.String(), found.Reason
	for _, host := range found.Hosts {
		fact := facts.DANEHost{Name: host.Name, Status: host.Status.String()}
		for _, record := range host.Records {
			fact.Records = append(fact.Records, cut(record.String(), maxText))
		}
		f.Hosts = append(f.Hosts, fact)
		f.Reason = cmp.Or(f.Reason, host.Reason)
	}
	f.Problems = daneProblems(found.AllProblems())
	e.checkCertificates(ctx, found)
}

// probed is what a mail server says.
type probed struct {
	err         error
	certificate *x509.Certificate
	matched     dane.Matched
}

// checkCertificates compares the certificates of mail servers with their TLSA records and
// with the clock.
func (e *examination) checkCertificates(ctx context.Context, found dane.Result) {
	if e.options.DialMX == nil {
		return
	}
	now := e.options.Now()
	hosts := found.Hosts[:min(len(found.Hosts), maxProbed)]
	results := make([]probed, len(hosts))
	var all recovered.Group
	for i, host := range hosts {
		all.Go(func() {
			p := &results[i]
			dial := func(ctx context.Context, name, serverName string) ([]*x509.Certificate, error) {
				chain, err := e.options.DialMX(ctx, name, serverName)
				if len(chain) > 0 {
					p.certificate = chain[0]
				}
				return chain, err
			}
			p.matched, p.err = host.Probe(ctx, dial, e.Domain, now)
		})
	}
	all.Wait()
	f, unseen := &e.facts.STARTTLS, found.Status == dane.StatusInconclusive && len(hosts) == 0
	matches := len(e.facts.DANE.Problems)
	for i, host := range hosts {
		p := results[i]
		if p.certificate == nil {
			// An unreachable server says nothing about its records.
			if !errors.Is(p.err, dns.ErrNoAddress) {
				unseen, f.Silent = true, append(f.Silent, host.Name)
			}
			continue
		}
		if host.Status == dane.StatusOK {
			e.facts.DANE.Problems = append(e.facts.DANE.Problems, daneProblems(p.matched.Problems)...)
			if p.matched.OK && p.matched.Record.Usage == dane.DANEEE {
				f.Pinned = append(f.Pinned, host.Name)
			}
		}
		kind := mtasts.CertificateExpired
		if now.Before(p.certificate.NotAfter) {
			if kind = mtasts.CertificateExpiresSoon; !mtasts.ExpiresSoon(p.certificate, now) {
				continue
			}
		}
		f.Problems = append(f.Problems, facts.Problem{Kind: string(kind), At: host.Name, Text: p.certificate.NotAfter.UTC().Format(time.DateOnly)})
	}
	// What was found is reported, even if another server of the domain does not answer.
	f.Status = "ok"
	if unseen && len(f.Problems) == 0 && len(e.facts.DANE.Problems) == matches {
		f.Status = inconclusive
	}
}

func daneProblems(problems []dane.Problem) []facts.Problem {
	var stored []facts.Problem
	for _, p := range problems {
		stored = append(stored, facts.Problem{Kind: string(p.Kind), At: p.Host, Text: storable(p.Text)})
	}
	return stored
}
