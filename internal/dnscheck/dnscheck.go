// Package dnscheck checks the DNS of a domain. It returns facts, findings with their fixes, a grade,
// and the time of the next check. It stores nothing: package service saves the result.
//
// Checker (dnscheck.go) has two checks. CheckDMARC looks up the DMARC record only. Examine
// (examine.go) is the full check: it runs the lookups of all protocols in parallel, each in a file
// named after it (spf.go, dkim.go, mx.go, tls.go, …), which fill in facts.Facts. Then evaluate
// (findings.go) derives the findings from the facts alone, by protocol in findings_*.go, with texts
// from catalogue.toml. Setup and Repaired propose records to publish.
//
// A new finding needs an entry in catalogue.toml and a condition in findings_*.go; a new fact a field
// in package facts and a lookup here. CONTRIBUTING.md works through an example.
//
// Limits: an examination makes at most Options.Budget queries and takes at most 30 seconds. Lookups
// that fail make their part of the facts inconclusive, never missing. The protocol packages interpret
// the records.
package dnscheck

import (
	"cmp"
	"context"
	"crypto/x509"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dane"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/outbound"
	"github.com/dmarcd/dmarcd/internal/trace"
)

const (
	// retryInterval is the delay before the first retry of an inconclusive check.
	retryInterval = time.Minute
	// spread is by how much a retry is shifted at most, as a share of its time.
	spread = 0.1
)

// Options are the settings of a Checker.
type Options struct {
	// Resolver should not use a cache: a check must see changes immediately.
	Resolver dns.Resolver
	// ReportDomain is the domain of this server's reporting addresses, "" if
	// it has none.
	ReportDomain string
	// Budget is the number of DNS queries per examination; default DefaultBudget.
	Budget int
	// Dialer connects to hosts named in records. It resolves names with Resolver, within
	// the budget of the check.
	Dialer outbound.Dialer
	// WebRoots are the trusted roots for HTTPS; nil means those of the system.
	WebRoots *x509.CertPool
	// MarkRoots are the trusted roots for BIMI mark certificates. If nil, certificate
	// chains are not verified.
	MarkRoots *x509.CertPool
	// DialMX reads the certificates of mail servers, to compare them with their TLSA
	// records and with the clock. If nil, no mail server is contacted.
	DialMX dane.Dial
	// Interval is the time between conclusive checks of a domain's DMARC record,
	// FullInterval that between full checks.
	Interval, FullInterval time.Duration
	// Now is the clock.
	Now func() time.Time
}

// Checker checks domains. It is safe for concurrent use.
type Checker struct {
	options Options
}

// New returns a Checker.
func New(options Options) *Checker {
	options.Budget = cmp.Or(options.Budget, DefaultBudget)
	return &Checker{options: options}
}

// Occasion is the reason for a check.
type Occasion uint8

const (
	// Scheduled means that the check was due.
	Scheduled Occasion = iota
	// Requested means that a user requested the check.
	Requested
	// Created means that the domain was just added. If DNS does not answer, the next check
	// follows immediately in the background.
	Created
)

// Plan returns the schedule of a domain after a check: the next one follows after the interval,
// or earlier if this one was inconclusive.
func (c *Checker) Plan(name string, occasion Occasion) dmarcd.Plan {
	now := c.options.Now()
	plan := dmarcd.Plan{
		Next:     nextCheck(name, now, c.options.Interval),
		NextFull: nextCheck(name, now, c.options.FullInterval),
		Retry:    jitter(retryInterval),
		MaxRetry: c.options.Interval,
	}
	if occasion == Created {
		plan.Retry = 0
	}
	return plan
}

// CheckDMARC discovers a domain's DMARC policy until the deadline of ctx, with a single query
// if the domain has its own record.
func (c *Checker) CheckDMARC(ctx context.Context, name string) facts.Check {
	ctx, span := trace.Start(ctx, "DNS check", trace.Internal)
	defer span.End(nil)
	span.Text("dmarcd.check", "dmarc")
	began := c.options.Now()
	return c.result(began, dmarc.DiscoverRecord(ctx, c.options.Resolver, name))
}

// result returns the DMARC part of a check that began at a time.
func (c *Checker) result(began time.Time, found dmarc.Discovery) facts.Check {
	check := facts.Check{At: began, NeedsMailbox: c.options.ReportDomain != ""}
	if found.Status == dmarc.StatusInconclusive {
		check.Reason = found.Reason
		return check
	}
	check.Conclusive = true
	for _, step := range found.Steps {
		if step.Domain == found.RecordDomain || found.Record == nil {
			check.TTL = step.Answer.TTL
			break
		}
	}
	check.Usable = found.Status == dmarc.StatusOK
	if found.Record == nil {
		return check
	}
	check.Record, check.RecordDomain = storable(found.Record.Text), found.RecordDomain
	check.Own = found.RecordDomain == found.Steps[0].Domain && len(found.Steps[0].Answer.Aliases) == 0
	check.Policy = found.Record.P.String()
	check.Mailboxes = c.mailboxes(found.Record.RUA)
	return check
}

// Prove returns the proof in DNS that a team controls a domain, with a query unless the record that a
// conclusive check found is one. It is "" if DNS does not answer.
func (c *Checker) Prove(ctx context.Context, domain dmarcd.Domain, check facts.Check) dmarcd.Proof {
	if check.Usable && check.Own && slices.Contains(check.Mailboxes, domain.ReportMailbox) {
		return dmarcd.ProofReports
	}
	answer := c.options.Resolver.Resolve(ctx, dns.Question{Name: domain.ChallengeName(), Type: dns.TXT})
	switch {
	case answer.Outcome == dns.Inconclusive:
		return ""
	case len(answer.Aliases) == 0 && slices.Contains(answer.Texts(), domain.ChallengeText()):
		return dmarcd.ProofChallenge
	}
	return dmarcd.ProofMissing
}

// mailboxes returns the local parts of the addresses at the report domain.
func (c *Checker) mailboxes(rua []dmarc.URI) []string {
	var mailboxes []string
	for _, uri := range rua {
		at := strings.LastIndexByte(uri.Address, '@')
		if at > 0 && uri.Host == c.options.ReportDomain {
			// Reporting addresses are lower case, but users and mail systems may change
			// the case.
			mailboxes = append(mailboxes, strings.ToLower(uri.Address[:at]))
		}
	}
	return mailboxes
}

// printable replaces bytes that JSON or PostgreSQL cannot store; a TXT record may contain
// any octet.
func printable(record string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(record, "\uFFFD"), "\x00", "\uFFFD")
}

// nextCheck returns the time of a domain's next check, about one interval from now. The offset
// within the interval is derived from the name, so domains that were added together are
// spread over the whole interval from their second check on.
func nextCheck(name string, now time.Time, interval time.Duration) time.Time {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name)) // never fails
	offset := float64(hash.Sum64()>>11) / (1 << 53)
	// The result is between half an interval and one and a half intervals from now.
	earliest := now.Add(interval / 2)
	began := earliest.Truncate(interval)
	at := began.Add(time.Duration(offset * float64(interval)))
	if at.Before(earliest) {
		at = at.Add(interval)
	}
	return at
}

// jitter shifts a duration randomly by up to 10 % in either direction.
func jitter(d time.Duration) time.Duration {
	return d + time.Duration((2*rand.Float64()-1)*spread*float64(d)) //nolint:gosec // spreads load, not security relevant
}
