package dnscheck

import (
	"context"

	"github.com/dmarcd/dmarcd/tlsrpt"
)

// checkTLSRPT looks up the TLS-RPT record.
func (e *examination) checkTLSRPT(ctx context.Context) {
	found := tlsrpt.LookupRecord(ctx, e.dns, e.Domain)
	f := &e.facts.TLSRPT
	f.Status, f.Reason = found.Status.String(), found.Answer.Reason
	problems := e.lookupProblems(ctx, found.Answer, found.Problems)
	if len(found.Records) == 1 {
		record := found.Records[0]
		f.Record = storable(record.Text)
		for _, uri := range record.RUA {
			f.Destinations = append(f.Destinations, storable(uri.Text))
		}
		problems = append(problems[:len(problems):len(problems)], record.Problems...)
	}
	f.Problems = fieldProblems(tlsrpt.QueryName(e.Domain), problems)
}
