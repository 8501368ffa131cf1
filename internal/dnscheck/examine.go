package dnscheck

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/trace"
)

// maxExamination bounds an examination whose caller sets no earlier deadline.
const maxExamination = 30 * time.Second

// Origin is how a selector became known.
type Origin string

// The origins, the most reliable first.
const (
	FromReport   Origin = "report"   // a receiver reported mail that was signed with it
	FromOwner    Origin = "declared" // declared by the owner of the domain
	FromGuessing Origin = "probed"   // a common name
)

// Selector is a DKIM selector to look up.
type Selector struct {
	Name string
	From Origin
}

// Request is the input of Examine.
type Request struct {
	// Domain is as dmarcd.ParseName returns it.
	Domain string
	// Selectors are the known DKIM selectors of the domain; common ones are tried as well.
	Selectors []Selector
	// ReportAddress is the expected address for aggregate reports; "" accepts any.
	ReportAddress string
	// TLSReportURIs are the expected destinations of TLS reports. One of them is enough;
	// empty accepts any.
	TLSReportURIs []string
	// Purpose is the declared use of the domain. A domain with a purpose is never treated
	// as parked.
	Purpose dmarcd.Purpose
	// Used is true if reported mail of the domain or its subdomains passes DMARC. It is then
	// not treated as parked either.
	Used bool
	// Parked is true if a user marked the domain as not used for mail. Only then a record with
	// p=reject is proposed as its first.
	Parked bool
	// Managed are the records of the domain that this installation answers for.
	Managed []Managed
}

// Managed is a record that a domain has by a CNAME record to Target, which answers with Content, or at a DNS server of
// its own, without a Target. The SPF record of the domain has Term instead of the CNAME record.
type Managed struct {
	Kind                  dmarcd.RecordKind
	Target, Term, Content string
}

func (r Request) inUse() bool { return r.Purpose != "" || r.Used }

// examination is the shared state of one run of Examine.
type examination struct {
	Request
	options Options
	dns     *budget
	facts   facts.Facts
	// policy is an MTA-STS policy to check instead of the one that the domain serves; see Try.
	policy string
	// logo is the image of the BIMI record; see Tried.
	logo []byte
}

// Examine runs a full check of a domain: all parts in parallel, until the deadline of ctx,
// with one shared query budget. It never fails. A part whose lookups fail is inconclusive;
// the check as a whole is inconclusive if DMARC is.
func (c *Checker) Examine(ctx context.Context, request Request) facts.Check {
	ctx, span := trace.Start(ctx, "DNS check", trace.Internal)
	defer span.End(nil)
	span.Text("dmarcd.check", "full")
	ctx, cancel := context.WithTimeout(ctx, maxExamination)
	defer cancel()
	e := &examination{Request: request, options: c.options, dns: newBudget(c.options.Resolver, c.options.Budget)}
	e.facts.Domain = request.Domain

	// DMARC comes first, so that a hostile domain cannot exhaust the budget before it.
	began := c.options.Now()
	found := dmarc.Discover(ctx, e.dns, request.Domain)
	check := c.result(began, found)
	e.run(ctx,
		// The BIMI record may be at the organizational domain, which DMARC discovers.
		func(ctx context.Context) { e.checkDMARC(ctx, found); e.checkBIMI(ctx) },
		e.checkSPF, e.checkDKIM, e.checkTLSRPT, e.checkDANE, e.checkDNSSEC, e.checkManaged,
		// The MTA-STS policy is compared with the MX hosts.
		func(ctx context.Context) { e.checkMX(ctx); e.checkMTASTS(ctx) },
	)
	check.Facts = &e.facts
	check.Findings = evaluate(e.facts, request)
	if check.Conclusive {
		check.Grade = grade(check.Findings)
	}
	check.Next = next(check.Findings)
	return check
}

// client returns an HTTP client for hosts named in records. Its lookups count against the
// query budget.
func (e *examination) client() *http.Client {
	return e.options.Dialer.With(e.dns).Client(e.options.WebRoots)
}

// run runs the parts in parallel and waits for them. Each writes its own facts. It
// re-panics if one of them panicked, after all have ended.
func (e *examination) run(ctx context.Context, parts ...func(context.Context)) {
	var all recovered.Group
	for _, part := range parts {
		all.Go(func() { part(ctx) })
	}
	all.Wait()
}

// DefaultBudget is the number of DNS queries per examination. A typical domain needs about
// sixty; the limit stops hostile domains.
const DefaultBudget = 400

// budget is a dns.Resolver for one examination. It sends each query once, so that all
// parts see the same answer. When the budget is exhausted, further queries are
// inconclusive with a reason.
type budget struct {
	resolver dns.Resolver
	limit    int

	mu      sync.Mutex
	answers map[dns.Question]*pending
}

// pending is an answer that is ready once done is closed.
type pending struct {
	done   chan struct{}
	answer dns.Answer
}

func newBudget(r dns.Resolver, limit int) *budget {
	return &budget{resolver: r, limit: limit, answers: make(map[dns.Question]*pending)}
}

// Resolve returns the answer to q, sending at most one query for it.
func (b *budget) Resolve(ctx context.Context, q dns.Question) dns.Answer {
	q.Name = dns.Name(q.Name)
	b.mu.Lock()
	p, known := b.answers[q]
	if !known {
		if len(b.answers) >= b.limit {
			b.mu.Unlock()
			return dns.Answer{Question: q, Reason: fmt.Sprintf("the check reached its limit of %d DNS queries", b.limit)}
		}
		p = &pending{done: make(chan struct{})}
		b.answers[q] = p
	}
	b.mu.Unlock()
	if !known {
		p.answer = inOrder(b.resolver.Resolve(ctx, q))
		close(p.done)
		return p.answer
	}
	select {
	case <-p.done:
		return p.answer
	case <-ctx.Done():
		return dns.Answer{Question: q, Reason: ctx.Err().Error()}
	}
}

// inOrder returns an answer with sorted records. Recursive servers rotate
// records (their order has no meaning, RFC 1034 §3.6), and facts must not change because
// of it. It does not modify the shared answer.
func inOrder(a dns.Answer) dns.Answer {
	if len(a.Records) < 2 {
		return a
	}
	a.Records = slices.Clone(a.Records)
	slices.SortFunc(a.Records, func(x, y dns.Record) int {
		return cmp.Or(
			cmp.Compare(x.Preference, y.Preference), strings.Compare(x.Host, y.Host), x.Addr.Compare(y.Addr),
			slices.Compare(x.Text, y.Text), bytes.Compare(x.Raw, y.Raw),
		)
	})
	return a
}
