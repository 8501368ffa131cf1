package mtasts

import (
	"context"
	"strings"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/txt"
)

// Status is the result of looking up the record of a domain.
type Status = txt.Status

const (
	// StatusInconclusive means that the query failed. Nothing is known about the record.
	StatusInconclusive = txt.Inconclusive
	// StatusOK means that there is one valid record.
	StatusOK = txt.OK
	// StatusNone means that there is no record.
	StatusNone = txt.None
	// StatusMultiple means that there are several records: senders must assume
	// that the domain has no policy (RFC 8461 §3.1).
	StatusMultiple = txt.Multiple
	// StatusInvalid means that there is one invalid record.
	StatusInvalid = txt.Invalid
)

// Lookup is the result of looking up the record of a domain.
type Lookup struct {
	Domain string
	Status Status
	// Found is the result of the query, zero if the name could not be queried.
	txt.Found[Record]
	// Problems lists problems other than those of the records themselves.
	Problems []Problem
}

// QueryName returns the name at which the record of a domain is published.
func QueryName(domain string) string { return "_mta-sts." + domain }

// LookupRecord looks up the record of a domain with one query (RFC 8461 §3.1). A name that
// is invalid in DNS has no record and is not queried.
func LookupRecord(ctx context.Context, r dns.Resolver, domain string) Lookup {
	l := Lookup{Domain: dns.Name(domain), Status: StatusNone}
	name := QueryName(l.Domain)
	if !dns.ValidName(name) {
		return l
	}
	l.Found = txt.Find(ctx, r, name, ParseRecord)
	l.Status = txt.StatusOf(l.Found, func(r Record) bool { return r.Valid })
	for _, text := range l.Others {
		if isNearMiss(text) {
			l.Problems = append(l.Problems, Problem{Kind: NearMiss, Text: text})
		}
	}
	if target, ok := l.DanglingAlias(); ok {
		l.Problems = append(l.Problems, Problem{Kind: DanglingAlias, Text: target})
	}
	if l.Status == StatusMultiple {
		l.Problems = append(l.Problems, Problem{Kind: MultipleRecords, Count: len(l.Records), Limit: 1})
	}
	return l
}

// isNearMiss reports whether a text that is not a record mentions the version.
func isNearMiss(text string) bool { return strings.Contains(strings.ToLower(text), "stsv") }
