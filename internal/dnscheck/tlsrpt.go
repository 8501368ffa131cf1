package dnscheck

import (
	"context"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// checkTLSRPT looks up the TLS-RPT record.
func (e *examination) checkTLSRPT(ctx context.Context) {
	found := tlsrpt.LookupRecord(ctx, e.dns, e.Domain)
	f := &e.facts.TLSRPT
	f.Status, f.Reason = found.Status.String(), found.Answer.Reason
	problems := found.Problems
	if e.wildcardAlias(ctx, found.Answer) {
		problems = slices.DeleteFunc(problems, func(p tlsrpt.Problem) bool { return p.Kind == tlsrpt.DanglingAlias })
	}
	if len(found.Records) == 1 {
		record := found.Records[0]
		f.Record = storable(record.Text)
		for _, uri := range record.RUA {
			f.Destinations = append(f.Destinations, storable(uri.Text))
		}
		problems = append(problems[:len(problems):len(problems)], record.Problems...)
	}
	for _, p := range problems {
		f.Problems = append(f.Problems, dmarcd.Problem{
			Kind: string(p.Kind), At: tlsrpt.QueryName(e.Domain), Part: storable(p.Field), Text: storable(p.Text), Count: p.Count, Limit: p.Limit,
		})
	}
}
