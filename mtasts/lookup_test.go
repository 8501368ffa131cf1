package mtasts_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/mtasts"
)

func TestLookupRecord(t *testing.T) {
	t.Parallel()
	type problems = []mtasts.Problem
	for _, tt := range []struct {
		name     string
		zone     string
		want     mtasts.Status
		records  int
		others   int
		problems problems
	}{
		{name: "one record", zone: `_mta-sts.example.com TXT "v=STSv1; id=1"`, want: mtasts.StatusOK, records: 1},
		{name: "in two strings", zone: `_mta-sts.example.com TXT "v=STSv1; i" "d=1"`, want: mtasts.StatusOK, records: 1},
		{
			name: "beside something else", zone: "_mta-sts.example.com TXT \"v=STSv1; id=1\"\n_mta-sts.example.com TXT \"other\"",
			want: mtasts.StatusOK, records: 1, others: 1,
		},
		{
			name: "kept elsewhere", zone: "_mta-sts.example.com CNAME sts.example.net\nsts.example.net TXT \"v=STSv1; id=1\"",
			want: mtasts.StatusOK, records: 1,
		},
		{
			name: "kept nowhere", zone: "_mta-sts.example.com CNAME gone.example.net",
			want: mtasts.StatusNone, problems: problems{{Kind: mtasts.DanglingAlias, Text: "gone.example.net"}},
		},
		{name: "invalid", zone: `_mta-sts.example.com TXT "v=STSv1; id=a-b"`, want: mtasts.StatusInvalid, records: 1},
		{
			name: "two records", zone: "_mta-sts.example.com TXT \"v=STSv1; id=1\"\n_mta-sts.example.com TXT \"v=STSv1; id=2\"",
			want: mtasts.StatusMultiple, records: 2, problems: problems{{Kind: mtasts.MultipleRecords, Count: 2, Limit: 1}},
		},
		{name: "no such name", want: mtasts.StatusNone},
		{name: "not inherited", zone: `_mta-sts.com TXT "v=STSv1; id=1"`, want: mtasts.StatusNone},
		{name: "no TXT record", zone: "_mta-sts.example.com A 192.0.2.1", want: mtasts.StatusNone},
		{name: "something else", zone: `_mta-sts.example.com TXT "v=spf1 -all"`, want: mtasts.StatusNone, others: 1},
		{
			name: "nearly a record", zone: `_mta-sts.example.com TXT "v=STSv1 id=1"`,
			want: mtasts.StatusNone, others: 1, problems: problems{{Kind: mtasts.NearMiss, Text: "v=STSv1 id=1"}},
		},
		{name: "inconclusive", zone: "_mta-sts.example.com INCONCLUSIVE", want: mtasts.StatusInconclusive},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := mtasts.LookupRecord(t.Context(), dnstest.New(tt.zone), "Example.COM.")
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
		got := mtasts.LookupRecord(t.Context(), zone, domain)
		if got.Status != mtasts.StatusNone || len(zone.Asked()) != 0 {
			t.Errorf("%q: got %v after %d questions, want %v after none", domain, got.Status, len(zone.Asked()), mtasts.StatusNone)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for got, want := range map[interface{ String() string }]string{
		mtasts.StatusInconclusive: "inconclusive", mtasts.StatusOK: "ok", mtasts.StatusNone: "none",
		mtasts.StatusMultiple: "multiple", mtasts.StatusInvalid: "invalid",
		mtasts.FetchInconclusive: "inconclusive", mtasts.FetchOK: "ok", mtasts.FetchInvalid: "invalid",
		mtasts.FetchBadCertificate: "bad certificate", mtasts.FetchRedirect: "redirect", mtasts.FetchBadStatus: "bad status",
		mtasts.FetchNoHost:  "no host",
		mtasts.ModeUnstated: "", mtasts.ModeEnforce: "enforce", mtasts.ModeTesting: "testing", mtasts.ModeNone: "none",
	} {
		if got.String() != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
