package tlsrpt

import (
	"context"
	"strings"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/txt"
)

// Status tells how things stand at the name of a domain's record.
type Status = txt.Status

const (
	// StatusInconclusive means that the question had no usable answer. Nothing is
	// stated about the record.
	StatusInconclusive = txt.Inconclusive
	// StatusOK means that there is one record, and that it is valid.
	StatusOK = txt.OK
	// StatusNone means that there is no record.
	StatusNone = txt.None
	// StatusMultiple means that there are several records: reporters must assume
	// that the domain does not want reports.
	StatusMultiple = txt.Multiple
	// StatusInvalid means that there is one record, and that it is not valid.
	StatusInvalid = txt.Invalid
)

// Lookup is what was found at the name of a domain's record.
type Lookup struct {
	// Domain is what was asked for.
	Domain string
	// Status tells how things stand.
	Status Status
	// Found is what was found. It is the zero value where the name could not be
	// asked for.
	txt.Found[Record]
	// Problems holds what is wrong beside the problems of the records themselves.
	Problems []Problem
}

// QueryName returns the name at which the record of a domain is published.
func QueryName(domain string) string { return "_smtp._tls." + domain }

// LookupRecord finds the record of a domain (RFC 8460 §3). It asks one question. A
// name that DNS cannot carry has no record and is not asked for.
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

// isNearMiss reports whether a text that is no record names the version in some
// way.
func isNearMiss(text string) bool { return strings.Contains(strings.ToLower(text), "tlsrpt") }
