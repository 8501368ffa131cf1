package tlsrpt_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

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
		{name: "in two strings", zone: `_smtp._tls.example.com TXT "v=TLSRPTv1; r" "ua=mailto:a@example.com"`, want: tlsrpt.StatusOK, records: 1},
		{
			name: "beside something else", zone: "_smtp._tls.example.com TXT \"v=TLSRPTv1; rua=mailto:a@example.com\"\n_smtp._tls.example.com TXT \"other\"",
			want: tlsrpt.StatusOK, records: 1, others: 1,
		},
		{
			name: "kept elsewhere", zone: "_smtp._tls.example.com CNAME tls.example.net\ntls.example.net TXT \"v=TLSRPTv1; rua=mailto:a@example.com\"",
			want: tlsrpt.StatusOK, records: 1,
		},
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
		{name: "no TXT record", zone: "_smtp._tls.example.com A 192.0.2.1", want: tlsrpt.StatusNone},
		{name: "something else", zone: `_smtp._tls.example.com TXT "v=spf1 -all"`, want: tlsrpt.StatusNone, others: 1},
		{
			name: "nearly a record", zone: `_smtp._tls.example.com TXT "v=TLSRPTv1 rua=mailto:a@example.com"`,
			want: tlsrpt.StatusNone, others: 1, problems: problems{{Kind: tlsrpt.NearMiss, Text: "v=TLSRPTv1 rua=mailto:a@example.com"}},
		},
		{name: "inconclusive", zone: "_smtp._tls.example.com INCONCLUSIVE", want: tlsrpt.StatusInconclusive},
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

func TestLookupRecordAsksOnlyForNames(t *testing.T) {
	t.Parallel()
	for _, domain := range []string{"", "a..b", "a b", "é.example"} {
		zone := dnstest.New("")
		got := tlsrpt.LookupRecord(t.Context(), zone, domain)
		if got.Status != tlsrpt.StatusNone || len(zone.Asked()) != 0 {
			t.Errorf("%q: got %v after %d questions, want %v after none", domain, got.Status, len(zone.Asked()), tlsrpt.StatusNone)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for got, want := range map[interface{ String() string }]string{
		tlsrpt.StatusInconclusive: "inconclusive", tlsrpt.StatusOK: "ok", tlsrpt.StatusNone: "none",
		tlsrpt.StatusMultiple: "multiple", tlsrpt.StatusInvalid: "invalid",
	} {
		if got.String() != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
