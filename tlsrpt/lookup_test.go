package tlsrpt_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// TestLookupRecord tests what this protocol passes to package txt. The tests of package mtasts
// have the other cases.
func TestLookupRecord(t *testing.T) {
	t.Parallel()
	type problems = []tlsrpt.Problem
	for _, tt := range []struct {
		name     string
		zone     string
		want     tlsrpt.Status
		records  int
		others   int
		problems problems
	}{
		{name: "one record", zone: `_smtp._tls.example.com TXT "v=TLSRPTv1; rua=mailto:a@example.com"`, want: tlsrpt.StatusOK, records: 1},
		{
			name: "kept nowhere", zone: "_smtp._tls.example.com CNAME gone.example.net",
			want: tlsrpt.StatusNone, problems: problems{{Kind: tlsrpt.DanglingAlias, Text: "gone.example.net"}},
		},
		{name: "invalid", zone: `_smtp._tls.example.com TXT "v=TLSRPTv1; rua=x"`, want: tlsrpt.StatusInvalid, records: 1},
		{
			name: "two records", zone: "_smtp._tls.example.com TXT \"v=TLSRPTv1; rua=mailto:a@example.com\"\n_smtp._tls.example.com TXT \"v=TLSRPTv1; rua=mailto:a@example.com\"",
			want: tlsrpt.StatusMultiple, records: 2, problems: problems{{Kind: tlsrpt.MultipleRecords, Count: 2, Limit: 1}},
		},
		{name: "no such name", want: tlsrpt.StatusNone},
		{name: "not inherited", zone: `_smtp._tls.com TXT "v=TLSRPTv1; rua=mailto:a@example.com"`, want: tlsrpt.StatusNone},
		{
			name: "nearly a record", zone: `_smtp._tls.example.com TXT "v=TLSRPTv1 rua=mailto:a@example.com"`,
			want: tlsrpt.StatusNone, others: 1, problems: problems{{Kind: tlsrpt.NearMiss, Text: "v=TLSRPTv1 rua=mailto:a@example.com"}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := tlsrpt.LookupRecord(t.Context(), dnstest.New(tt.zone), "Example.COM.")
			if got.Status != tt.want || len(got.Records) != tt.records || len(got.Others) != tt.others {
				t.Errorf("got %v, %d records, %d others; want %v, %d, %d", got.Status, len(got.Records), len(got.Others), tt.want, tt.records, tt.others)
			}
			if diff := cmp.Diff(tt.problems, got.Problems); diff != "" {
				t.Errorf("got other problems (-want +got):\n%s", diff)
			}
			if _, ok := got.Record(); ok != (tt.records == 1) {
				t.Errorf("one record: got %v, want %v", ok, tt.records == 1)
			}
		})
	}
}
