package bimi

import (
	"context"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/txt"
)

// DefaultSelector is the selector of messages that name none.
const DefaultSelector = "default"

// Status tells what a lookup found.
type Status uint8

const (
	// StatusInconclusive means that a question had no usable answer.
	StatusInconclusive Status = iota
	// StatusOK means that a record applies and names an image.
	StatusOK
	// StatusNone means that no record applies.
	StatusNone
	// StatusDeclined means that the record that applies declines to take part.
	StatusDeclined
	// StatusMultiple means that there are several records, of which receivers use
	// none.
	StatusMultiple
	// StatusInvalid means that the record that applies cannot be used.
	StatusInvalid
)

// String returns the status in one word.
func (s Status) String() string {
	switch s {
	case StatusOK:
		return "ok"
	case StatusNone:
		return "none"
	case StatusDeclined:
		return "declined"
	case StatusMultiple:
		return "multiple"
	case StatusInvalid:
		return "invalid"
	default:
		return "inconclusive"
	}
}

// Query says whose record is wanted.
type Query struct {
	// Domain is the author domain.
	Domain string
	// Organization is its organizational domain in the sense of DMARC. Where it
	// is "" or the domain itself, there is no other place to look.
	Organization string
	// Selector is the selector of the message; "" stands for the default.
	Selector string
}

// normalized returns the query with names in the form of dns.Name and the default
// selector filled in.
func (q Query) normalized() Query {
	q.Domain, q.Organization, q.Selector = dns.Name(q.Domain), dns.Name(q.Organization), dns.Name(q.Selector)
	if q.Selector == "" {
		q.Selector = DefaultSelector
	}
	return q
}

// Result is what a lookup found.
type Result struct {
	// Query is what was asked for, with names in the form of dns.Name and the
	// default selector filled in.
	Query Query
	// Status tells what was found.
	Status Status
	// Record is the record that applies, usable or not; nil where there is none,
	// or several.
	Record *Record
	// RecordDomain is the domain at which the records were found: the author
	// domain or its organizational domain; "" where there are none.
	RecordDomain string
	// Texts holds the BIMI records at RecordDomain as they were published, at
	// most 100.
	Texts []string
	// Ignored holds the other texts at the names that were asked for, at most
	// 100.
	Ignored []string
	// Queried holds the names that were asked for, in order.
	Queried []string
	// Reason says in words why Status is StatusInconclusive; "" otherwise.
	Reason string
}

// QueryName returns the name at which the record of a domain is looked for.
func QueryName(selector, domain string) string {
	return dns.Name(selector) + "._bimi." + dns.Name(domain)
}

// Lookup finds the record that applies to mail from a domain (§7.2): its own, or
// where there is none that of the organizational domain with the same selector. It
// asks at most two questions. Selectors made from local parts are not tried, since
// there is no message.
func Lookup(ctx context.Context, r dns.Resolver, q Query) Result {
	q = q.normalized()
	result := Result{Query: q}
	if result.lookAt(ctx, r, q.Domain) || q.Organization == "" || q.Organization == q.Domain {
		return result
	}
	result.lookAt(ctx, r, q.Organization)
	return result
}

// lookAt looks for the record at one domain and reports whether that settles it.
func (result *Result) lookAt(ctx context.Context, r dns.Resolver, domain string) bool {
	name := QueryName(result.Query.Selector, domain)
	result.Queried = append(result.Queried, name)
	found := txt.Find(ctx, r, name, Parse)
	if found.Answer.Outcome == dns.Inconclusive {
		result.Status, result.Reason = StatusInconclusive, found.Answer.Reason
		return true
	}
	room := maxKept - len(result.Ignored)
	result.Ignored = append(result.Ignored, found.Others[:min(room, len(found.Others))]...)
	for _, record := range found.Records {
		result.Texts = append(result.Texts, record.Text)
	}
	if len(found.Records) == 0 {
		result.Status = StatusNone
		return false
	}
	result.RecordDomain = domain
	result.Status = StatusMultiple
	if record, ok := found.Record(); ok {
		result.Status, result.Record = statusOf(record.State), &record
	}
	return true
}

// statusOf returns the status of a domain to which one record applies.
func statusOf(s State) Status {
	switch s {
	case OK:
		return StatusOK
	case Declined:
		return StatusDeclined
	default:
		return StatusInvalid
	}
}
