package txt_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/dns/txt"
)

// number is a record for tests: "n=" and a number, which is valid if it is even.
type number int

func (n number) even() bool { return n%2 == 0 }

func parseNumber(text string) (number, bool) {
	digits, ok := strings.CutPrefix(text, "n=")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return number(n), err == nil
}

func TestFind(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, zone string
		records    []number
		others     []string
		status     txt.Status
		word       string
		dangling   string
	}{
		{
			name: "one valid record", zone: `x.example TXT "n=" "2"`,
			records: []number{2}, status: txt.OK, word: "ok",
		},
		{
			name: "one record beside other texts", zone: `
				x.example TXT "hello"
				x.example TXT "n=4"
				x.example TXT "m=1"`,
			records: []number{4}, others: []string{"hello", "m=1"}, status: txt.OK, word: "ok",
		},
		{
			name: "one invalid record", zone: `x.example TXT "n=3"`,
			records: []number{3}, status: txt.Invalid, word: "invalid",
		},
		{
			name: "several records", zone: `
				x.example TXT "n=2"
				x.example TXT "n=4"`,
			records: []number{2, 4}, status: txt.Multiple, word: "multiple",
		},
		{
			name: "other texts alone", zone: `x.example TXT "hello"`,
			others: []string{"hello"}, status: txt.None, word: "none",
		},
		{name: "no such name", status: txt.None, word: "none"},
		{name: "no TXT record", zone: `x.example A 192.0.2.1`, status: txt.None, word: "none"},
		{name: "no answer", zone: `x.example INCONCLUSIVE`, status: txt.Inconclusive, word: "inconclusive"},
		{
			name: "alias to a record", zone: `
				x.example CNAME y.example
				y.example TXT   "n=2"`,
			records: []number{2}, status: txt.OK, word: "ok",
		},
		{
			name: "alias to another text", zone: `
				x.example CNAME y.example
				y.example TXT   "hello"`,
			others: []string{"hello"}, status: txt.None, word: "none",
		},
		{
			name: "aliases to nowhere", zone: `
				x.example CNAME y.example
				y.example CNAME gone.example`,
			status: txt.None, word: "none", dangling: "gone.example",
		},
		{
			name: "alias to a name without TXT records", zone: `
				x.example CNAME y.example
				y.example A     192.0.2.1`,
			status: txt.None, word: "none", dangling: "y.example",
		},
		{
			name: "alias to a name that gives no answer", zone: `
				x.example CNAME y.example
				y.example INCONCLUSIVE`,
			status: txt.Inconclusive, word: "inconclusive",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			zone := dnstest.New(tt.zone)
			got := txt.Find(t.Context(), zone, "x.example", parseNumber)
			if diff := cmp.Diff(tt.records, got.Records); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.others, got.Others); diff != "" {
				t.Errorf("others (-want +got):\n%s", diff)
			}
			status := txt.StatusOf(got, number.even)
			if status != tt.status || status.String() != tt.word {
				t.Errorf("got status %d %q, want %d %q", status, status, tt.status, tt.word)
			}
			record, single := got.Record()
			if want := len(tt.records) == 1; single != want || want && record != tt.records[0] || !want && record != 0 {
				t.Errorf("got record %d, %v, want one of %v", record, single, tt.records)
			}
			if target, ok := got.DanglingAlias(); target != tt.dangling || ok != (tt.dangling != "") {
				t.Errorf("got dangling alias %q, %v, want %q", target, ok, tt.dangling)
			}
			question := dns.Question{Name: "x.example", Type: dns.TXT}
			if diff := cmp.Diff([]dns.Question{question}, zone.Asked()); diff != "" {
				t.Errorf("questions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFindKeepsAHundred(t *testing.T) {
	t.Parallel()
	const each = 150
	zone := dnstest.New("")
	for n := range each {
		text := strconv.Itoa(n)
		zone.Add(
			dns.Record{Name: "x.example", Type: dns.TXT, Text: []string{text}},
			dns.Record{Name: "x.example", Type: dns.TXT, Text: []string{"n=" + text}},
		)
	}
	got := txt.Find(t.Context(), zone, "x.example", parseNumber)
	if len(got.Records) != 100 || len(got.Others) != 100 {
		t.Errorf("got %d records and %d others, want 100 of each", len(got.Records), len(got.Others))
	}
}
