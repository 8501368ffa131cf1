package bimi

import (
	"cmp"
	"context"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/txt"
)

// DefaultSelector is the selector of messages that do not specify one.
const DefaultSelector = "default"

// Status is the result of a lookup.
type Status uint8

const (
	// StatusInconclusive means that a query failed.
	StatusInconclusive Status = iota
	// StatusOK means that a record applies and refers to an image.
	StatusOK
	// StatusNone means that no record applies.
	StatusNone
	// StatusDeclined means that the applicable record declines to participate.
	StatusDeclined
	// StatusMultiple means that there are several records; receivers ignore them all.
	StatusMultiple
	// StatusInvalid means that the applicable record is unusable.
	StatusInvalid
)

var statusWords = [...]string{
	StatusInconclusive: "inconclusive", StatusOK: "ok", StatusNone: "none",
	StatusDeclined: "declined", StatusMultiple: "multiple", StatusInvalid: "invalid",
}

// String returns the status in one word.
func (s Status) String() string { return statusWords[s] }

// Query specifies the record to look up.
type Query struct {
	// Domain is the author domain.
	Domain string
	// Organization is its organizational domain as in DMARC. If it is "" or the domain
	// itself, there is no fallback.
	Organization string
	// Selector is the selector of the message; "" is the default.
	Selector string
}

// normalized returns the query with normalized names and the default selector filled in.
func (q Query) normalized() Query {
	q.Domain, q.Organization, q.Selector = dns.Name(q.Domain), dns.Name(q.Organization), dns.Name(q.Selector)
	q.Selector = cmp.Or(q.Selector, DefaultSelector)
	return q
}

// Result is the result of a lookup.
type Result struct {
	// Query is the normalized query.
	Query  Query
	Status Status
	// Record is the applicable record, usable or not; nil if there is none or several.
	Record *Record
	// RecordDomain is the domain of the records: the author domain or its organizational
	// domain; "" if there are none.
	RecordDomain string
	// Texts are the BIMI records at RecordDomain, at most 100.
	Texts []string
	// Ignored are the other TXT records at the queried names, at most 100.
	Ignored []string
	// Queried are the queried names, in order.
	Queried []string
	// Reason explains StatusInconclusive; "" otherwise.
	Reason string
}

// QueryName returns the name of the record of a domain.
func QueryName(selector, domain string) string {
	return dns.Name(selector) + "._bimi." + dns.Name(domain)
}

// Lookup looks up the record for mail from a domain (§7.2): its own, or that of the
// organizational domain with the same selector. It makes at most two queries. Selectors
// derived from local parts are not tried, since there is no message.
func Lookup(ctx context.Context, r dns.Resolver, q Query) Result {
	q = q.normalized()
	result := Result{Query: q}
	if result.lookUp(ctx, r, q.Domain) || q.Organization == "" || q.Organization == q.Domain {
		return result
	}
	result.lookUp(ctx, r, q.Organization)
	return result
}

// lookUp looks up the record of one domain and reports whether the result is final.
func (result *Result) lookUp(ctx context.Context, r dns.Resolver, domain string) bool {
	name := QueryName(result.Query.Selector, domain)
	result.Queried = append(result.Queried, name)
	found := txt.Find(ctx, r, name, Parse)
	if found.Answer.Outcome == dns.Inconclusive {
		result.Status, result.Reason = StatusInconclusive, found.Answer.Reason
		return true
	}
	left := maxListed - len(result.Ignored)
	result.Ignored = append(result.Ignored, found.Others[:min(left, len(found.Others))]...)
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

// statusOf returns the status for one applicable record.
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
