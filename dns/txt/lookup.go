package txt

import (
	"context"
	"strings"

	"github.com/dmarcd/dmarcd/dns"
)

// Protocol is a protocol with one record per domain. R is its record type.
type Protocol[R any] struct {
	// QueryName returns the name at which the record of a domain is published.
	QueryName func(domain string) string
	// Parse returns false for a text that is not a record of the protocol.
	Parse func(text string) (R, bool)
	// Valid reports whether a record is valid.
	Valid func(R) bool
	// Word occurs, in any case, in texts that were probably meant to be a record. It is
	// in lower case.
	Word string
}

// Lookup is the result of looking up the record of a domain.
type Lookup[R any] struct {
	Domain string
	Status Status
	// Found is the result of the query, zero if the name could not be queried.
	Found[R]
	// Problems lists problems other than those of the records themselves.
	Problems []Problem
}

// LookUp looks up the record of a domain with one query. A name that is invalid in DNS
// has no record and is not queried.
func LookUp[R any](ctx context.Context, r dns.Resolver, domain string, p Protocol[R]) Lookup[R] {
	l := Lookup[R]{Domain: dns.Name(domain), Status: None}
	name := p.QueryName(l.Domain)
	if !dns.ValidName(name) {
		return l
	}
	l.Found = Find(ctx, r, name, p.Parse)
	l.Status = StatusOf(l.Found, p.Valid)
	note := func(problem Problem) { l.Problems = append(l.Problems, problem) }
	for _, text := range l.Others {
		if strings.Contains(strings.ToLower(text), p.Word) {
			note(Problem{Kind: NearMiss, Text: text})
		}
	}
	if target, ok := l.DanglingAlias(); ok {
		note(Problem{Kind: DanglingAlias, Text: target})
	}
	if l.Status == Multiple {
		note(Problem{Kind: MultipleRecords, Count: len(l.Records), Limit: 1})
	}
	return l
}
