package tlsrpt_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// mailbox returns the destination for a plain mailto URI.
func mailbox(address string) tlsrpt.URI {
	_, host, _ := strings.Cut(address, "@")
	return tlsrpt.URI{Text: "mailto:" + address, Scheme: "mailto", Address: address, Host: host}
}

// anyFatal reports whether one of the problems makes a record invalid. TestFatal checks
// which do.
func anyFatal(problems []tlsrpt.Problem) bool {
	return slices.ContainsFunc(problems, func(p tlsrpt.Problem) bool { return p.Kind.Fatal() })
}

func TestParseRecord(t *testing.T) {
	t.Parallel()
	type (
		problems = []tlsrpt.Problem
		uris     = []tlsrpt.URI
	)
	one := uris{mailbox("reports@example.com")}
	const (
		good = "rua=mailto:reports@example.com"
		long = "a2345678901234567890123456789012" // 32 characters
	)
	for _, tt := range []struct {
		name string
		txt  string
		want tlsrpt.Record // without Text, Fields and Valid
	}{
		{name: "96 RFC 8460 3.1.1", txt: "v=TLSRPTv1;rua=mailto:reports@example.com", want: tlsrpt.Record{RUA: one}},
		{
			name: "RFC 8460 3.1.2", txt: "v=TLSRPTv1; rua=https://reporting.example.com/v1/tlsrpt",
			want: tlsrpt.Record{RUA: uris{{Text: "https://reporting.example.com/v1/tlsrpt", Scheme: "https", Host: "reporting.example.com"}}},
		},
		{
			name: "two destinations", txt: "v=TLSRPTv1; rua=mailto:a@example.com,mailto:b@example.net",
			want: tlsrpt.Record{RUA: uris{mailbox("a@example.com"), mailbox("b@example.net")}},
		},
		{
			name: "white space where it may be", txt: "v=TLSRPTv1;\t rua=mailto:a@example.com \t, mailto:b@example.net \t; ",
			want: tlsrpt.Record{RUA: uris{mailbox("a@example.com"), mailbox("b@example.net")}},
		},
		{name: "semicolon at the end", txt: "v=TLSRPTv1;" + good + ";", want: tlsrpt.Record{RUA: one}},
		{name: "96 no destination", txt: "v=TLSRPTv1;", want: tlsrpt.Record{Problems: problems{{Kind: tlsrpt.MissingField, Field: "rua"}}}},
		{
			name: "a field twice", txt: "v=TLSRPTv1; " + good + "; rua=mailto:b@example.net",
			want: tlsrpt.Record{
				RUA:      append(slices.Clone(one), mailbox("b@example.net")),
				Problems: problems{{Kind: tlsrpt.RepeatedField, Field: "rua", Text: "mailto:b@example.net"}},
			},
		},
		{
			name: "a field in upper case", txt: "v=TLSRPTv1; RUA=mailto:a@example.com",
			want: tlsrpt.Record{Problems: problems{{Kind: tlsrpt.FieldCase, Field: "rua", Text: "RUA"}, {Kind: tlsrpt.MissingField, Field: "rua"}}},
		},
		{
			name: "white space around the equals sign", txt: "v=TLSRPTv1; rua =mailto:a@example.com",
			want: tlsrpt.Record{Problems: problems{{Kind: tlsrpt.MalformedField, Text: "rua =mailto:a@example.com"}, {Kind: tlsrpt.MissingField, Field: "rua"}}},
		},
		{
			name: "white space before the first URI", txt: "v=TLSRPTv1; rua= mailto:a@example.com",
			want: tlsrpt.Record{Problems: problems{{Kind: tlsrpt.BadURI, Field: "rua", Text: " mailto:a@example.com"}, {Kind: tlsrpt.NoDestination, Field: "rua"}}},
		},
		{
			name: "an extension", txt: "v=TLSRPTv1; " + good + "; 0_-.=!~:<>",
			want: tlsrpt.Record{RUA: one, Problems: problems{{Kind: tlsrpt.UnknownField, Field: "0_-.", Text: "!~:<>"}}},
		},
		{
			name: "an extension with two equals signs", txt: "v=TLSRPTv1; " + good + "; x==",
			want: tlsrpt.Record{RUA: one, Problems: problems{{Kind: tlsrpt.MalformedField, Text: "x=="}}},
		},
		{
			name: "an extension without a value", txt: "v=TLSRPTv1; " + good + "; x=",
			want: tlsrpt.Record{RUA: one, Problems: problems{{Kind: tlsrpt.MalformedField, Text: "x="}}},
		},
		{
			name: "an extension with the longest name", txt: "v=TLSRPTv1; " + good + "; " + long + "=1",
			want: tlsrpt.Record{RUA: one, Problems: problems{{Kind: tlsrpt.UnknownField, Field: long, Text: "1"}}},
		},
		{
			name: "an extension with a name too long", txt: "v=TLSRPTv1; " + good + "; " + long + "3=1",
			want: tlsrpt.Record{RUA: one, Problems: problems{{Kind: tlsrpt.MalformedField, Text: long + "3=1"}}},
		},
		{name: "no equals sign", txt: "v=TLSRPTv1; " + good + "; x", want: tlsrpt.Record{RUA: one, Problems: problems{{Kind: tlsrpt.MalformedField, Text: "x"}}}},
		{name: "two semicolons", txt: "v=TLSRPTv1;; " + good, want: tlsrpt.Record{RUA: one, Problems: problems{{Kind: tlsrpt.EmptyField}}}},
		{name: "white space before the first semicolon", txt: "v=TLSRPTv1 ; " + good, want: tlsrpt.Record{RUA: one, Problems: problems{{Kind: tlsrpt.SpacedVersion}}}},
		{name: "white space at the end", txt: "v=TLSRPTv1; " + good + "\t", want: tlsrpt.Record{RUA: one, Problems: problems{{Kind: tlsrpt.TrailingSpace}}}},
		{
			name: "another scheme beside a good one", txt: "v=TLSRPTv1; rua=http://example.com/," + good[4:],
			want: tlsrpt.Record{RUA: one, Problems: problems{{Kind: tlsrpt.UnsupportedScheme, Field: "rua", Text: "http://example.com/"}}},
		},
		{
			name: "another scheme alone", txt: "v=TLSRPTv1; rua=ftp://example.com/",
			want: tlsrpt.Record{Problems: problems{
				{Kind: tlsrpt.UnsupportedScheme, Field: "rua", Text: "ftp://example.com/"}, {Kind: tlsrpt.NoDestination, Field: "rua"},
			}},
		},
		{
			name: "a bad URI beside a good one", txt: "v=TLSRPTv1; " + good + ",reports@example.com",
			want: tlsrpt.Record{RUA: one, Problems: problems{{Kind: tlsrpt.BadURI, Field: "rua", Text: "reports@example.com"}}},
		},
		{
			name: "a comma at the end", txt: "v=TLSRPTv1; " + good + ",",
			want: tlsrpt.Record{RUA: one, Problems: problems{{Kind: tlsrpt.BadURI, Field: "rua"}}},
		},
		{
			name: "the same destination twice", txt: "v=TLSRPTv1; " + good + ",mailto:Reports%40Example.com,https://a.example/,https://a.example/",
			want: tlsrpt.Record{
				RUA: uris{
					one[0],
					{Text: "mailto:Reports%40Example.com", Scheme: "mailto", Address: "Reports@Example.com", Host: "example.com"},
					{Text: "https://a.example/", Scheme: "https", Host: "a.example"},
					{Text: "https://a.example/", Scheme: "https", Host: "a.example"},
				},
				Problems: problems{
					{Kind: tlsrpt.DuplicateURI, Field: "rua", Text: "mailto:Reports%40Example.com"},
					{Kind: tlsrpt.DuplicateURI, Field: "rua", Text: "https://a.example/"},
				},
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := tt.want
			want.Text, want.Valid = tt.txt, !anyFatal(want.Problems)
			got, ok := tlsrpt.ParseRecord(tt.txt)
			if !ok {
				t.Fatal("got no record, want one")
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(tlsrpt.Record{}, "Fields")); diff != "" {
				t.Errorf("got another record (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRecordURIs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		uri  string
		want tlsrpt.URI // without Text; the zero value for an invalid URI
	}{
		{"MAILTO:A@Example.COM", tlsrpt.URI{Scheme: "mailto", Address: "A@Example.COM", Host: "example.com"}},
		{"mailto:a%2Cb@example.com", tlsrpt.URI{Scheme: "mailto", Address: "a,b@example.com", Host: "example.com"}},
		{"mailto:a@example.com?subject=x", tlsrpt.URI{Scheme: "mailto", Address: "a@example.com", Host: "example.com"}},
		{"mailto:a@b@example.com", tlsrpt.URI{Scheme: "mailto", Address: "a@b@example.com", Host: "example.com"}},
		{"https://Example.com:8443/a?b=c", tlsrpt.URI{Scheme: "https", Host: "example.com"}},
		{"mailto:", tlsrpt.URI{}},
		{"mailto:example.com", tlsrpt.URI{}},
		{"mailto:@example.com", tlsrpt.URI{}},
		{"mailto:a@", tlsrpt.URI{}},
		{"mailto:a@exa%20mple.com", tlsrpt.URI{}},
		{"mailto:a%0A@example.com", tlsrpt.URI{}},
		{"mailto:a%FF@example.com", tlsrpt.URI{}},
		{"mailto:a%2@example.com", tlsrpt.URI{}},
		{"mailto:a@example.com!10m", tlsrpt.URI{}},
		{"mailto:a b@example.com", tlsrpt.URI{}},
		{"https:///path", tlsrpt.URI{}},
		{"https://[::1/", tlsrpt.URI{}},
		{"1https://example.com/", tlsrpt.URI{}},
		{"://example.com", tlsrpt.URI{}},
	} {
		t.Run(tt.uri, func(t *testing.T) {
			t.Parallel()
			got, _ := tlsrpt.ParseRecord("v=TLSRPTv1; rua=" + tt.uri)
			if tt.want.Scheme == "" {
				want := []tlsrpt.Problem{{Kind: tlsrpt.BadURI, Field: "rua", Text: tt.uri}, {Kind: tlsrpt.NoDestination, Field: "rua"}}
				if diff := cmp.Diff(want, got.Problems); diff != "" {
					t.Errorf("got other problems (-want +got):\n%s", diff)
				}
				return
			}
			tt.want.Text = tt.uri
			if diff := cmp.Diff([]tlsrpt.URI{tt.want}, got.RUA); diff != "" {
				t.Errorf("got another URI (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRecordLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		txt   string
		want  tlsrpt.Problem
		valid bool
	}{
		{"fields", "v=TLSRPTv1; rua=mailto:a@example.com" + strings.Repeat("; x=y", 100), tlsrpt.Problem{Kind: tlsrpt.TooManyFields, Text: "x=y"}, false},
		{"problems", "v=TLSRPTv1; rua=https://a.example" + strings.Repeat(",x", 101), tlsrpt.Problem{Kind: tlsrpt.BadURI, Field: "rua", Text: "x"}, false},
		{"URIs", "v=TLSRPTv1; rua=https://a.example" + manyURIs(100), tlsrpt.Problem{Kind: tlsrpt.TooManyURIs, Field: "rua", Text: uriNumber(99), Limit: 100}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, _ := tlsrpt.ParseRecord(tt.txt)
			if len(got.Fields) > 100 || len(got.RUA) > 100 || len(got.Problems) > 100 || got.Valid != tt.valid {
				t.Errorf("got %d fields, %d URIs, %d problems, valid %v; want at most 100 of each, valid %v", len(got.Fields), len(got.RUA), len(got.Problems), got.Valid, tt.valid)
			}
			if !slices.Contains(got.Problems, tt.want) {
				t.Errorf("got %v, want %v among them", got.Problems, tt.want)
			}
		})
	}
}

// uriNumber returns a distinct URI for each i.
func uriNumber(i int) string { return "https://a.example/" + strings.Repeat("x", i) }

// manyURIs returns n distinct URIs, each after a comma.
func manyURIs(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("," + uriNumber(i))
	}
	return b.String()
}

func TestParseRecordOnOtherTexts(t *testing.T) {
	t.Parallel()
	for _, txt := range []string{
		"", "v=spf1 -all", "v=TLSRPTv1", "v=TLSRPTv2; rua=mailto:a@example.com", "v=TLSRPTv10; rua=mailto:a@example.com",
		"v=tlsrptv1; rua=mailto:a@example.com", " v=TLSRPTv1; rua=mailto:a@example.com", "v = TLSRPTv1; rua=mailto:a@example.com",
		"v=TLSRPTv1 rua=mailto:a@example.com", "rua=mailto:a@example.com; v=TLSRPTv1;",
	} {
		t.Run(txt, func(t *testing.T) {
			t.Parallel()
			if got, ok := tlsrpt.ParseRecord(txt); ok {
				t.Errorf("got %+v, want no record", got)
			}
		})
	}
}

func TestFatal(t *testing.T) {
	t.Parallel()
	for kind, want := range map[tlsrpt.Kind]bool{
		tlsrpt.MissingField: true, tlsrpt.MalformedField: true, tlsrpt.EmptyField: true, tlsrpt.TooManyFields: true,
		tlsrpt.BadURI: true, tlsrpt.NoDestination: true,
		tlsrpt.UnsupportedScheme: false, tlsrpt.DuplicateURI: false, tlsrpt.TooManyURIs: false, tlsrpt.RepeatedField: false,
		tlsrpt.UnknownField: false, tlsrpt.FieldCase: false, tlsrpt.SpacedVersion: false, tlsrpt.TrailingSpace: false,
	} {
		if got := kind.Fatal(); got != want {
			t.Errorf("%s: got %v, want %v", kind, got, want)
		}
	}
}

func TestRecordFields(t *testing.T) {
	t.Parallel()
	record, _ := tlsrpt.ParseRecord("v=TLSRPTv1; x=1; rua=mailto:a@example.com; bad; x=2")
	want := []tlsrpt.Field{{"x", "1"}, {"rua", "mailto:a@example.com"}, {"x", "2"}}
	if diff := cmp.Diff(want, record.Fields); diff != "" {
		t.Errorf("got other fields (-want +got):\n%s", diff)
	}
}

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
