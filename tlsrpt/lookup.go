package tlsrpt

import (
	"context"
	"strings"

	"github.com/dmarcd/dmarcd/dns"
)

// Status tells how things stand at the name of a domain's record.
type Status uint8

const (
	// StatusInconclusive means that the question had no usable answer. Nothing is
	// stated about the record.
	StatusInconclusive Status = iota
	// StatusOK means that there is one record, and that it is valid.
	StatusOK
	// StatusNone means that there is no record.
	StatusNone
	// StatusMultiple means that there are several records: reporters must assume
	// that the domain does not want reports.
	StatusMultiple
	// StatusInvalid means that there is one record, and that it is not valid.
	StatusInvalid
)

// String returns the status in one word.
func (s Status) String() string {
	switch s {
	case StatusOK:
		return "ok"
	case StatusNone:
		return "none"
	case StatusMultiple:
		return "multiple"
	case StatusInvalid:
		return "invalid"
	default:
		return "inconclusive"
	}
}

// Lookup is what was found at the name of a domain's record.
type Lookup struct {
	// Domain is what was asked for.
	Domain string
	// Status tells how things stand.
	Status Status
	// Records holds the records found, at most 100.
	Records []Record
	// Others holds the texts found beside them that are no TLSRPT records, at most
	// 100.
	Others []string
	// Answer is the answer as the resolver gave it, the zero value where the name
	// could not be asked for.
	Answer dns.Answer
	// Problems holds what is wrong beside the problems of the records themselves.
	Problems []Problem
}

// Record returns the record of the domain, if there is exactly one.
func (l Lookup) Record() (Record, bool) {
	if len(l.Records) != 1 {
		return Record{}, false
	}
	return l.Records[0], true
}

// QueryName returns the name at which the record of a domain is published.
func QueryName(domain string) string { return "_smtp._tls." + domain }

// LookupRecord finds the record of a domain (RFC 8460 §3). It asks one question. A
// name that DNS cannot carry has no record and is not asked for.
func LookupRecord(ctx context.Context, r dns.Resolver, domain string) Lookup {
	l := Lookup{Domain: dns.Name(domain)}
	name := QueryName(l.Domain)
	if !isDomainName(name) {
		l.Status = StatusNone
		return l
	}
	l.Answer = r.Resolve(ctx, dns.Question{Name: name, Type: dns.TXT})
	for _, text := range l.Answer.Texts() {
		record, ok := ParseRecord(text)
		switch {
		case ok && len(l.Records) < maxKept:
			l.Records = append(l.Records, record)
		case !ok && len(l.Others) < maxKept:
			l.Others = append(l.Others, text)
			if isNearMiss(text) {
				l.Problems = append(l.Problems, Problem{Kind: NearMiss, Text: text})
			}
		}
	}
	l.judge()
	return l
}

// judge sets the status and the problems of the lookup as a whole.
func (l *Lookup) judge() {
	aliases := l.Answer.Aliases
	switch {
	case l.Answer.Outcome == dns.Inconclusive:
		l.Status = StatusInconclusive
	case len(l.Records) == 0:
		l.Status = StatusNone
		if len(l.Others) == 0 && len(aliases) > 0 {
			l.Problems = append(l.Problems, Problem{Kind: DanglingAlias, Text: aliases[len(aliases)-1]})
		}
	case len(l.Records) > 1:
		l.Status = StatusMultiple
		l.Problems = append(l.Problems, Problem{Kind: MultipleRecords, Count: len(l.Records), Limit: 1})
	case l.Records[0].Valid:
		l.Status = StatusOK
	default:
		l.Status = StatusInvalid
	}
}

// isNearMiss reports whether a text that is no record names the version in some
// way.
func isNearMiss(txt string) bool { return strings.Contains(strings.ToLower(txt), "tlsrpt") }
