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

func TestFindReturnsAHundred(t *testing.T) {
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

func TestCutVersion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		rest       string
		spaced, ok bool
	}{
		{name: "version and fields", text: "v=X1; a=b", rest: " a=b", ok: true},
		{name: "nothing after the semicolon", text: "v=X1;", ok: true},
		{name: "white space before the semicolon", text: "v=X1 \t;a=b", rest: "a=b", spaced: true, ok: true},
		{name: "no semicolon", text: "v=X1"},
		{name: "longer version", text: "v=X10;"},
		{name: "another case", text: "V=X1;"},
		{name: "white space first", text: " v=X1;"},
		{name: "empty", text: ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rest, spaced, ok := txt.CutVersion(tt.text, "v=X1")
			if ok != tt.ok || ok && (rest != tt.rest || spaced != tt.spaced) {
				t.Errorf("got %q, %v, %v, want %q, %v, %v", rest, spaced, ok, tt.rest, tt.spaced, tt.ok)
			}
		})
	}
}

func TestExtensions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text      string
		isName, isValue bool
	}{
		{name: "letters and digits", text: "Ab1", isName: true, isValue: true},
		{name: "digit first", text: "1a", isName: true, isValue: true},
		{name: "punctuation inside", text: "a_b-c.d", isName: true, isValue: true},
		{name: "punctuation first", text: "_a", isValue: true},
		{name: "longest name", text: strings.Repeat("a", 32), isName: true, isValue: true},
		{name: "name too long", text: strings.Repeat("a", 33), isValue: true},
		{name: "other printable characters", text: "!~", isValue: true},
		{name: "equals sign", text: "a=b"},
		{name: "space", text: "a b"},
		{name: "not ASCII", text: "ä"},
		{name: "empty", text: ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := txt.IsExtensionName(tt.text); got != tt.isName {
				t.Errorf("IsExtensionName(%q): got %v, want %v", tt.text, got, tt.isName)
			}
			if got := txt.IsExtensionValue(tt.text); got != tt.isValue {
				t.Errorf("IsExtensionValue(%q): got %v, want %v", tt.text, got, tt.isValue)
			}
		})
	}
}
