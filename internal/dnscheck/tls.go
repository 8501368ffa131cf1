package dnscheck

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd/dane"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/mtasts"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// checkMTASTS looks up the record and fetches the policy. It needs the MX facts.
func (e *examination) checkMTASTS(ctx context.Context) {
	found := mtasts.LookupRecord(ctx, e.dns, e.Domain)
	f := &e.facts.MTASTS
	f.Status, f.Reason = found.Status.String(), found.Answer.Reason
	f.Problems = fieldProblems(mtasts.QueryName(e.Domain), e.lookupProblems(ctx, found.Answer, found.Problems))
	if len(found.Records) == 1 {
		record := found.Records[0]
		f.Record = storable(record.Text)
		f.Problems = append(f.Problems, fieldProblems(mtasts.QueryName(e.Domain), record.Problems)...)
	}
	if found.Status != mtasts.StatusOK {
		return
	}
	fetched := e.fetchPolicy(ctx)
	f.Fetch, f.FetchReason = fetched.Status.String(), storableReason(fetched.Reason)
	f.HTTPStatus, f.Location = fetched.Code, storable(fetched.Location)
	f.Mode, f.MaxAge = fetched.Policy.Mode.String(), int64(fetched.Policy.MaxAge.Seconds())
	f.MX = fetched.Policy.MX
	f.PolicyProblems = fieldProblems(fetched.URL, slices.Concat(fetched.Problems, fetched.ExpiresSoon(e.options.Now()), fetched.Policy.Problems))
	if fetched.Status == mtasts.FetchOK && fetched.Policy.Mode != mtasts.ModeNone {
		compareMX(f, e.facts.MX.Hosts)
	}
}

// fetchPolicy returns the policy that the domain serves, or that of a draft.
func (e *examination) fetchPolicy(ctx context.Context) mtasts.Fetched {
	if e.policy == "" {
		return mtasts.Fetch(ctx, e.client(), e.Domain)
	}
	policy := mtasts.ParsePolicy(e.policy)
	fetched := mtasts.Fetched{Domain: e.Domain, Policy: policy, Status: mtasts.FetchInvalid}
	if policy.Valid {
		fetched.Status = mtasts.FetchOK
	}
	return fetched
}

// compareMX compares the patterns of the policy with the MX hosts.
func compareMX(f *facts.MTASTS, hosts []facts.MXHost) {
	used := map[string]bool{}
	for _, host := range hosts {
		covered := false
		for _, pattern := range f.MX {
			if mtasts.MatchMX(pattern, host.Name) {
				covered, used[pattern] = true, true
			}
		}
		if !covered && host.Name != "" {
			f.Uncovered = append(f.Uncovered, host.Name)
		}
	}
	for _, pattern := range f.MX {
		if len(hosts) > 0 && !used[pattern] && !slices.Contains(f.Unused, pattern) {
			f.Unused = append(f.Unused, pattern)
		}
	}
}

func fieldProblems(at string, problems []mtasts.Problem) []facts.Problem {
	var stored []facts.Problem
	for _, p := range problems {
		stored = append(stored, facts.Problem{
			Kind: string(p.Kind), At: at, Part: storable(p.Field), Text: storable(p.Text), Count: p.Count, Limit: p.Limit,
		})
	}
	return stored
}

// lookupProblems returns the problems of a lookup. An alias that a wildcard causes is not a problem.
func (e *examination) lookupProblems(ctx context.Context, a dns.Answer, problems []mtasts.Problem) []mtasts.Problem {
	if !e.wildcardAlias(ctx, a) {
		return problems
	}
	return slices.DeleteFunc(problems, func(p mtasts.Problem) bool { return p.Kind == mtasts.DanglingAlias })
}

// checkTLSRPT looks up the TLS-RPT record.
func (e *examination) checkTLSRPT(ctx context.Context) {
	found := tlsrpt.LookupRecord(ctx, e.dns, e.Domain)
	f := &e.facts.TLSRPT
	f.Status, f.Reason = found.Status.String(), found.Answer.Reason
	problems := e.lookupProblems(ctx, found.Answer, found.Problems)
	if len(found.Records) == 1 {
		record := found.Records[0]
		f.Record = storable(record.Text)
		for _, uri := range record.RUA {
			f.Destinations = append(f.Destinations, storable(uri.Text))
		}
		problems = append(problems[:len(problems):len(problems)], record.Problems...)
	}
	f.Problems = fieldProblems(tlsrpt.QueryName(e.Domain), problems)
}

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

// probed is the answer of a mail server.
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
