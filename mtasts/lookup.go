package mtasts

import (
	"context"

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
type Lookup = txt.Lookup[Record]

// QueryName returns the name at which the record of a domain is published.
func QueryName(domain string) string { return "_mta-sts." + domain }

// LookupRecord looks up the record of a domain with one query (RFC 8461 §3.1). A name that is
// invalid in DNS has no record and is not queried.
func LookupRecord(ctx context.Context, r dns.Resolver, domain string) Lookup {
	return txt.LookUp(ctx, r, domain, txt.Protocol[Record]{
		QueryName: QueryName,
		Parse:     ParseRecord,
		Valid:     func(r Record) bool { return r.Valid },
		Word:      "stsv",
	})
}
