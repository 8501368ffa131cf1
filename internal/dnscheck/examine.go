package dnscheck

import (
	"context"
	"net/http"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/recovered"
)

// maxExamination bounds an examination whose caller set no earlier deadline.
const maxExamination = 30 * time.Second

// Origin tells how a selector became known.
type Origin string

// The origins, the most reliable first.
const (
	FromReport   Origin = "report"   // a receiver reported mail that was signed with it
	FromOwner    Origin = "declared" // the owner of the domain named it
	FromGuessing Origin = "probed"   // many domains have it
)

// Selector is a DKIM selector to look for.
type Selector struct {
	Name string
	From Origin
}

// Request says what to examine.
type Request struct {
	// Domain is as dmarcd.ParseName returns it.
	Domain string
	// Selectors holds the DKIM selectors known for the domain; well-known ones
	// are tried beside them.
	Selectors []Selector
	// ReportAddress is the mail address that aggregate reports should go to; ""
	// where any will do.
	ReportAddress string
	// TLSReportURIs are where TLS reports should go, to one of them at least; none
	// where any will do.
	TLSReportURIs []string
	// Purpose is what the domain is declared to be used for. A domain with a
	// purpose is not taken for a parked one.
	Purpose dmarcd.Purpose
}

// examination is one run of Examine: what its parts share.
type examination struct {
	Request
	options Options
	dns     *budget
	facts   dmarcd.Facts
}

// Examine looks at everything that decides whether mail as a domain is trusted:
// all parts side by side, until the deadline of ctx, with one budget of
// questions. It never fails: a part that could not be looked at is inconclusive
// by itself, and the check as a whole where that is DMARC.
func (c *Checker) Examine(ctx context.Context, request Request) dmarcd.Check {
	ctx, cancel := context.WithTimeout(ctx, maxExamination)
	defer cancel()
	e := &examination{Request: request, options: c.options, dns: newBudget(c.options.Resolver, c.options.Budget)}
	e.facts.Domain = request.Domain

	// DMARC comes first: its few questions must not fall victim to a budget that
	// a hostile domain made other parts use up.
	look := *c
	look.options.Resolver = e.dns
	check := look.Look(ctx, request.Domain)
	e.run(ctx,
		// The BIMI record may be the organizational domain's, which DMARC finds.
		func(ctx context.Context) { e.lookDMARC(ctx); e.lookBIMI(ctx) },
		e.lookSPF, e.lookDKIM, e.lookTLSRPT, e.lookDANE, e.lookDNSSEC,
		// The policy of MTA-STS is compared with the MX hosts.
		func(ctx context.Context) { e.lookMX(ctx); e.lookMTASTS(ctx) },
	)
	check.Facts = &e.facts
	check.Findings = judge(e.facts, request)
	if check.Conclusive {
		check.Grade = grade(check.Findings)
	}
	check.Next = next(check.Findings)
	return check
}

// client returns an HTTP client for hosts that records name. Finding them counts
// towards the budget of questions.
func (e *examination) client() *http.Client {
	return e.options.Dialer.With(e.dns).Client(e.options.WebRoots)
}

// run runs the parts side by side and waits for them. Each writes its own facts. A panic
// of one of them is raised again here, once all have ended.
func (e *examination) run(ctx context.Context, parts ...func(context.Context)) {
	var all recovered.Group
	for _, part := range parts {
		all.Go(func() { part(ctx) })
	}
	all.Wait()
}
