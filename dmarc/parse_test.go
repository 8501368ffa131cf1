package dmarc_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd/dmarc"
)

// mailbox is the destination that a plain mailto URI parses into.
func mailbox(address string) dmarc.URI {
	_, host, _ := strings.Cut(address, "@")
	return dmarc.URI{Text: "mailto:" + address, Scheme: "mailto", Address: address, Host: host}
}

func mailboxes(addresses ...string) []dmarc.URI {
	uris := make([]dmarc.URI, len(addresses))
	for i, a := range addresses {
		uris[i] = mailbox(a)
	}
	return uris
}

func TestParse(t *testing.T) {
	t.Parallel()
	type problems = []dmarc.Problem
	for _, tt := range []struct {
		name string
		txt  string
		want dmarc.Record // without Text and Tags; FO 0 stands for the default
	}{
		{name: "a public suffix without failure reports", txt: "v=DMARC1; p=reject; psd=y", want: dmarc.Record{P: dmarc.Reject, PSD: dmarc.PSDYes}},
		{name: "smallest", txt: "v=DMARC1; p=reject", want: dmarc.Record{P: dmarc.Reject}},
		{
			name: "1 monitoring with all defaults", txt: "v=DMARC1; p=none; rua=mailto:dmarc-feedback@example.com",
			want: dmarc.Record{P: dmarc.None, RUA: mailboxes("dmarc-feedback@example.com")},
		},
		{
			name: "3 two destinations and testing", txt: "v=DMARC1; p=quarantine; rua=mailto:a@example.com,mailto:t@thirdparty.example.net; t=y",
			want: dmarc.Record{P: dmarc.Quarantine, Testing: true, RUA: mailboxes("a@example.com", "t@thirdparty.example.net")},
		},
		{
			name: "4 version alone", txt: "v=DMARC1",
			want: dmarc.Record{State: dmarc.NoProcessing, Problems: problems{{dmarc.MissingTag, "p", ""}}},
		},
		{
			name: "5 version and semicolon", txt: "v=DMARC1;",
			want: dmarc.Record{State: dmarc.NoProcessing, Problems: problems{{dmarc.MissingTag, "p", ""}}},
		},
		{name: "11 white space around everything", txt: "v = DMARC1 ; p = reject ;", want: dmarc.Record{P: dmarc.Reject}},
		{name: "11 tabs are white space", txt: "v\t=\tDMARC1\t;\tp\t=\treject\t;\t", want: dmarc.Record{P: dmarc.Reject}},
		{name: "12 values in any case", txt: "v=DMARC1; p=Reject; sp=NONE", want: dmarc.Record{P: dmarc.Reject, SP: dmarc.None}},
		{
			name: "12 all keywords in any case", txt: "v=DMARC1; p=REJECT; sp=Quarantine; np=None; adkim=S; aspf=R; psd=N; t=Y; fo=D:S; ruf=MAILTO:f@Example.COM",
			want: dmarc.Record{
				P: dmarc.Reject, SP: dmarc.Quarantine, NP: dmarc.None, ADKIM: dmarc.Strict, PSD: dmarc.PSDNo, Testing: true, FO: dmarc.FailureDKIM | dmarc.FailureSPF,
				RUF: []dmarc.URI{{Text: "MAILTO:f@Example.COM", Scheme: "mailto", Address: "f@Example.COM", Host: "example.com"}},
			},
		},
		{
			name: "13 p need not be second", txt: "v=DMARC1; rua=mailto:a@example.com; p=reject",
			want: dmarc.Record{P: dmarc.Reject, RUA: mailboxes("a@example.com")},
		},
		{
			name: "14 no p but a destination", txt: "v=DMARC1; rua=mailto:a@example.com",
			want: dmarc.Record{State: dmarc.ActsAsNone, RUA: mailboxes("a@example.com"), Problems: problems{{dmarc.MissingTag, "p", ""}}},
		},
		{
			name: "15 no p and no destination", txt: "v=DMARC1; sp=reject",
			want: dmarc.Record{State: dmarc.NoProcessing, SP: dmarc.Reject, Problems: problems{{dmarc.MissingTag, "p", ""}}},
		},
		{
			name: "16 invalid p with a destination", txt: "v=DMARC1; p=bogus; rua=mailto:a@example.com",
			want: dmarc.Record{State: dmarc.ActsAsNone, RUA: mailboxes("a@example.com"), Problems: problems{{dmarc.InvalidValue, "p", "bogus"}}},
		},
		{
			name: "17 invalid sp takes p away", txt: "v=DMARC1; p=reject; sp=bogus; rua=mailto:a@example.com",
			want: dmarc.Record{State: dmarc.ActsAsNone, P: dmarc.Reject, RUA: mailboxes("a@example.com"), Problems: problems{{dmarc.InvalidValue, "sp", "bogus"}}},
		},
		{
			name: "18 invalid sp without a destination", txt: "v=DMARC1; p=reject; sp=bogus",
			want: dmarc.Record{State: dmarc.NoProcessing, P: dmarc.Reject, Problems: problems{{dmarc.InvalidValue, "sp", "bogus"}}},
		},
		{
			name: "empty sp is an invalid one", txt: "v=DMARC1; p=reject; sp=",
			want: dmarc.Record{State: dmarc.NoProcessing, P: dmarc.Reject, Problems: problems{{dmarc.InvalidValue, "sp", ""}}},
		},
		{
			name: "19 invalid np takes p away", txt: "v=DMARC1; p=reject; np=maybe; rua=mailto:a@example.com",
			want: dmarc.Record{State: dmarc.ActsAsNone, P: dmarc.Reject, RUA: mailboxes("a@example.com"), Problems: problems{{dmarc.InvalidValue, "np", "maybe"}}},
		},
		{
			name: "20 invalid modes fall back to relaxed", txt: "v=DMARC1; p=reject; adkim=x; aspf=strict",
			want: dmarc.Record{P: dmarc.Reject, Problems: problems{{dmarc.InvalidValue, "adkim", "x"}, {dmarc.InvalidValue, "aspf", "strict"}}},
		},
		{
			name: "21 invalid psd and t fall back", txt: "v=DMARC1; p=reject; psd=z; t=maybe",
			want: dmarc.Record{P: dmarc.Reject, Problems: problems{{dmarc.InvalidValue, "psd", "z"}, {dmarc.InvalidValue, "t", "maybe"}}},
		},
		{
			name: "explicit defaults", txt: "v=DMARC1; p=reject; adkim=r; aspf=r; psd=u; t=n; fo=0; ruf=mailto:f@example.com",
			want: dmarc.Record{P: dmarc.Reject, RUF: mailboxes("f@example.com")},
		},
		{
			name: "22 historic tags", txt: "v=DMARC1; p=reject; pct=50; rf=afrf; ri=86400",
			want: dmarc.Record{P: dmarc.Reject, Problems: problems{{dmarc.HistoricTag, "pct", "50"}, {dmarc.HistoricTag, "rf", "afrf"}, {dmarc.HistoricTag, "ri", "86400"}}},
		},
		{
			name: "23 a tag twice makes the record void", txt: "v=DMARC1; p=none; p=reject",
			want: dmarc.Record{State: dmarc.Void, P: dmarc.None, Problems: problems{{dmarc.DuplicateTag, "p", "reject"}}},
		},
		{
			name: "an unknown tag twice makes it void as well", txt: "v=DMARC1; p=none; foo=1; FOO=2",
			want: dmarc.Record{State: dmarc.Void, P: dmarc.None, Problems: problems{{dmarc.UnknownTag, "foo", "1"}, {dmarc.TagCase, "foo", "FOO"}, {dmarc.DuplicateTag, "foo", "2"}}},
		},
		{
			name: "the version twice", txt: "v=DMARC1; v=DMARC1; p=none",
			want: dmarc.Record{State: dmarc.Void, P: dmarc.None, Problems: problems{{dmarc.DuplicateTag, "v", "DMARC1"}}},
		},
		{
			name: "24 unknown and malformed tags", txt: "v=DMARC1; p=reject; foo=bar; x-y=1",
			want: dmarc.Record{P: dmarc.Reject, Problems: problems{{dmarc.UnknownTag, "foo", "bar"}, {dmarc.MalformedElement, "", "x-y=1"}}},
		},
		{
			name: "unknown tags without a value or a name", txt: "v=DMARC1; p=reject; foo=; =bar; baz",
			want: dmarc.Record{P: dmarc.Reject, Problems: problems{{dmarc.MalformedElement, "", "foo="}, {dmarc.MalformedElement, "", "=bar"}, {dmarc.MalformedElement, "", "baz"}}},
		},
		{
			name: "25 empty elements", txt: "v=DMARC1;; p=reject; ; rua=mailto:a@example.com;",
			want: dmarc.Record{P: dmarc.Reject, RUA: mailboxes("a@example.com"), Problems: problems{{dmarc.EmptyElement, "", ""}, {dmarc.EmptyElement, "", ""}}},
		},
		{
			name: "26 fo with both 0 and 1", txt: "v=DMARC1; p=none; fo=0:1; ruf=mailto:f@example.com",
			want: dmarc.Record{P: dmarc.None, RUF: mailboxes("f@example.com"), Problems: problems{{dmarc.InvalidValue, "fo", "0:1"}}},
		},
		{
			name: "27 fo with three options", txt: "v=DMARC1; p=none; fo=1:d:s; ruf=mailto:f@example.com",
			want: dmarc.Record{P: dmarc.None, FO: dmarc.FailureAny | dmarc.FailureDKIM | dmarc.FailureSPF, RUF: mailboxes("f@example.com")},
		},
		{
			name: "27 fo in another order", txt: "v=DMARC1; p=none; fo=d : s:0; ruf=mailto:f@example.com",
			want: dmarc.Record{P: dmarc.None, FO: dmarc.FailureAll | dmarc.FailureDKIM | dmarc.FailureSPF, RUF: mailboxes("f@example.com")},
		},
		{
			name: "28 fo with an option twice", txt: "v=DMARC1; p=none; fo=d:d; ruf=mailto:f@example.com",
			want: dmarc.Record{P: dmarc.None, RUF: mailboxes("f@example.com"), Problems: problems{{dmarc.InvalidValue, "fo", "d:d"}}},
		},
		{
			name: "fo that ends in a colon", txt: "v=DMARC1; p=none; fo=0:; ruf=mailto:f@example.com",
			want: dmarc.Record{P: dmarc.None, RUF: mailboxes("f@example.com"), Problems: problems{{dmarc.InvalidValue, "fo", "0:"}}},
		},
		{
			name: "29 fo without ruf", txt: "v=DMARC1; p=none; fo=1",
			want: dmarc.Record{P: dmarc.None, FO: dmarc.FailureAny, Problems: problems{{dmarc.UnusedFailureOptions, "fo", "1"}}},
		},
		{
			name: "36 empty p", txt: "v=DMARC1; p=",
			want: dmarc.Record{State: dmarc.NoProcessing, Problems: problems{{dmarc.InvalidValue, "p", ""}}},
		},
		{
			name: "36 p without an equals sign", txt: "v=DMARC1; p reject",
			want: dmarc.Record{State: dmarc.NoProcessing, Problems: problems{{dmarc.MalformedElement, "", "p reject"}, {dmarc.MissingTag, "p", ""}}},
		},
		{
			name: "37 failure reports on a public suffix", txt: "v=DMARC1; p=reject; psd=y; ruf=mailto:f@x.example",
			want: dmarc.Record{P: dmarc.Reject, PSD: dmarc.PSDYes, RUF: mailboxes("f@x.example"), Problems: problems{{dmarc.FailureReportsOnPSD, "ruf", "mailto:f@x.example"}}},
		},
		{name: "38 testing without a policy", txt: "v=DMARC1; p=none; t=y", want: dmarc.Record{P: dmarc.None, Testing: true}},
		{
			name: "tag names in upper case", txt: "V=DMARC1; P=reject",
			want: dmarc.Record{P: dmarc.Reject, Problems: problems{{dmarc.TagCase, "v", "V"}, {dmarc.TagCase, "p", "P"}}},
		},
		{
			name: "a value that is not ASCII", txt: "v=DMARC1; p=reject; rua=mailto:ä@example.com; foo=ä",
			want: dmarc.Record{P: dmarc.Reject, Problems: problems{{dmarc.BadURI, "rua", "mailto:ä@example.com"}, {dmarc.MalformedElement, "", "foo=ä"}}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := dmarc.Parse(tt.txt)
			if !ok {
				t.Fatalf("%q: not taken for a DMARC record", tt.txt)
			}
			if got.Text != tt.txt {
				t.Errorf("text: got %q want %q", got.Text, tt.txt)
			}
			if tt.want.FO == 0 {
				tt.want.FO = dmarc.FailureAll
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(dmarc.Record{}, "Text", "Tags")); diff != "" {
				t.Errorf("%q (-want +got):\n%s", tt.txt, diff)
			}
		})
	}
}

func TestParsePreservesAllTags(t *testing.T) {
	t.Parallel()
	got, _ := dmarc.Parse("v=DMARC1; P = reject ; foo=a=b;; x-y=1; sp=; az=~ ~;")
	want := []dmarc.Tag{{"P", "reject"}, {"foo", "a=b"}, {"sp", ""}, {"az", "~ ~"}}
	if diff := cmp.Diff(want, got.Tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
}

func TestRecordPolicy(t *testing.T) {
	t.Parallel()
	type answer struct {
		policy dmarc.Policy
		tag    string
	}
	subjects := []dmarc.Subject{dmarc.Itself, dmarc.Subdomain, dmarc.MissingSubdomain}
	for _, tt := range []struct {
		name, txt string
		want      [3]answer
	}{
		{"p alone", "v=DMARC1; p=reject", [3]answer{{dmarc.Reject, "p"}, {dmarc.Reject, "p"}, {dmarc.Reject, "p"}}},
		{"sp", "v=DMARC1; p=reject; sp=none", [3]answer{{dmarc.Reject, "p"}, {dmarc.None, "sp"}, {dmarc.None, "sp"}}},
		{"np", "v=DMARC1; p=quarantine; np=reject", [3]answer{{dmarc.Quarantine, "p"}, {dmarc.Quarantine, "p"}, {dmarc.Reject, "np"}}},
		{"all three", "v=DMARC1; p=none; sp=quarantine; np=reject", [3]answer{{dmarc.None, "p"}, {dmarc.Quarantine, "sp"}, {dmarc.Reject, "np"}}},
		{"acts as none", "v=DMARC1; p=reject; np=reject; sp=x; rua=mailto:a@example.com", [3]answer{{dmarc.None, "p"}, {dmarc.None, "p"}, {dmarc.None, "p"}}},
		{"no processing", "v=DMARC1; sp=reject; np=reject", [3]answer{}},
		{"void", "v=DMARC1; p=reject; p=reject", [3]answer{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, _ := dmarc.Parse(tt.txt)
			for i, s := range subjects {
				policy, tag := r.Policy(s)
				if got := (answer{policy, tag}); got != tt.want[i] {
					t.Errorf("subject %d: got %v want %v", s, got, tt.want[i])
				}
			}
		})
	}
}

func TestRecordApplied(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, txt string
		want      dmarc.Policy
	}{
		{"not in testing", "v=DMARC1; p=reject", dmarc.Reject},
		{"reject in testing", "v=DMARC1; p=reject; t=y", dmarc.Quarantine},
		{"quarantine in testing", "v=DMARC1; p=quarantine; t=y", dmarc.None},
		{"none in testing", "v=DMARC1; p=none; t=y", dmarc.None},
		{"unusable in testing", "v=DMARC1; t=y", dmarc.Unstated},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, _ := dmarc.Parse(tt.txt)
			policy, _ := r.Policy(dmarc.Itself)
			if got := r.Applied(policy); got != tt.want {
				t.Errorf("got %q want %q", got, tt.want)
			}
		})
	}
}

func TestRecordString(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, txt, want string }{
		{"canonical", "v=DMARC1; p=reject; rua=mailto:a@example.com", "v=DMARC1; p=reject; rua=mailto:a@example.com"},
		{
			"every tag", "v=DMARC1;fo=s:d:1;ruf=mailto:f@example.com!10M , https://example.net/;t=Y;psd=n;aspf=S;adkim=s;np=none;sp=quarantine;p=reject",
			"v=DMARC1; p=reject; sp=quarantine; np=none; adkim=s; aspf=s; psd=n; t=y; ruf=mailto:f@example.com!10M,https://example.net/; fo=1:d:s",
		},
		{"defaults are left out", "v=DMARC1; p=none; adkim=r; aspf=r; psd=u; t=n; fo=0", "v=DMARC1; p=none"},
		{"what is broken is left out", "v=DMARC1;; p=reject; sp=bogus; pct=50; foo=bar; rua=unknown", "v=DMARC1; p=reject"},
		{"no policy", "v=DMARC1;", "v=DMARC1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, ok := dmarc.Parse(tt.txt)
			if got := r.String(); !ok || got != tt.want {
				t.Errorf("got %q want %q", got, tt.want)
			}
		})
	}
}

func TestRecordStringOfFields(t *testing.T) {
	t.Parallel()
	r := dmarc.Record{P: dmarc.None, RUA: mailboxes("d@example.com")}
	const want = "v=DMARC1; p=none; rua=mailto:d@example.com"
	if got := r.String(); got != want {
		t.Errorf("got %q want %q", got, want)
	}
}

func TestParseBounds(t *testing.T) {
	t.Parallel()
	const most = 100
	for _, tt := range []struct{ name, txt string }{
		{"tags", "v=DMARC1" + strings.Repeat("; foo=bar", 5000)},
		{"broken elements", "v=DMARC1" + strings.Repeat("; foo", 5000)},
		{"empty elements", "v=DMARC1" + strings.Repeat(";", 5000)},
		{"destinations", "v=DMARC1; p=none; rua=mailto:a@example.com" + strings.Repeat(",mailto:a@example.com", 3000)},
		{"broken destinations", "v=DMARC1; p=none; ruf=x" + strings.Repeat(",x", 5000)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, ok := dmarc.Parse(tt.txt)
			if !ok {
				t.Fatal("not taken for a DMARC record")
			}
			for part, n := range map[string]int{"tags": len(r.Tags), "problems": len(r.Problems), "rua": len(r.RUA), "ruf": len(r.RUF)} {
				if n > most {
					t.Errorf("%s: got %d want at most %d", part, n, most)
				}
			}
		})
	}
}

func TestParseReportsOfUnreadTags(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("v=DMARC1; p=reject")
	for i := range 100 { // p is the first of the hundred that are read
		b.WriteString("; " + strings.Repeat("x", i+1) + "=1")
	}
	r, _ := dmarc.Parse(b.String())
	if len(r.Tags) != 100 {
		t.Errorf("tags: got %d want 100", len(r.Tags))
	}
	if r.State != dmarc.OK {
		t.Errorf("state: got %v want %v", r.State, dmarc.OK)
	}
	last := r.Problems[len(r.Problems)-1]
	if want := (dmarc.Problem{Kind: dmarc.TooManyTags, Text: strings.Repeat("x", 100) + "=1"}); last != want {
		t.Errorf("last problem: got %v want %v", last, want)
	}
}

func TestParseDestinations(t *testing.T) {
	t.Parallel()
	type problems = []dmarc.Problem
	bad := func(entry string) problems { return problems{{dmarc.BadURI, "rua", entry}} }
	for _, tt := range []struct {
		name     string
		rua      string
		want     []dmarc.URI
		problems problems
	}{
		{name: "one", rua: "mailto:a@example.com", want: mailboxes("a@example.com")},
		{name: "white space around entries", rua: " mailto:a@example.com\t, mailto:b@example.com ", want: mailboxes("a@example.com", "b@example.com")},
		{name: "white space inside an entry", rua: "mailto:\ta@example.com", problems: bad("mailto:\ta@example.com")},
		{
			name: "30 size suffix", rua: "mailto:a@example.com!10m",
			want:     []dmarc.URI{{Text: "mailto:a@example.com", Scheme: "mailto", Address: "a@example.com", Host: "example.com", Size: "10m"}},
			problems: problems{{dmarc.SizeSuffix, "rua", "mailto:a@example.com!10m"}},
		},
		{
			name: "size in bytes", rua: "mailto:a@example.com!18446744073709551615",
			want:     []dmarc.URI{{Text: "mailto:a@example.com", Scheme: "mailto", Address: "a@example.com", Host: "example.com", Size: "18446744073709551615"}},
			problems: problems{{dmarc.SizeSuffix, "rua", "mailto:a@example.com!18446744073709551615"}},
		},
		{name: "size too large", rua: "mailto:a@example.com!18446744073709551616", problems: bad("mailto:a@example.com!18446744073709551616")},
		{name: "31 size with an unknown unit", rua: "mailto:a@example.com!10p", problems: bad("mailto:a@example.com!10p")},
		{name: "size without a number", rua: "mailto:a@example.com!m", problems: bad("mailto:a@example.com!m")},
		{name: "empty size", rua: "mailto:a@example.com!", problems: bad("mailto:a@example.com!")},
		{name: "two sizes", rua: "mailto:a@example.com!1!2", problems: bad("mailto:a@example.com!1!2")},
		{name: "32 no scheme", rua: "reports@example.com", problems: bad("reports@example.com")},
		{
			name: "33 other scheme", rua: "https://Reports.example.net/dmarc",
			want:     []dmarc.URI{{Text: "https://Reports.example.net/dmarc", Scheme: "https", Host: "reports.example.net"}},
			problems: problems{{dmarc.UnsupportedScheme, "rua", "https://Reports.example.net/dmarc"}},
		},
		{
			name: "33 other scheme, two paths", rua: "https://r.example/a,https://r.example/b",
			want:     []dmarc.URI{{Text: "https://r.example/a", Scheme: "https", Host: "r.example"}, {Text: "https://r.example/b", Scheme: "https", Host: "r.example"}},
			problems: problems{{dmarc.UnsupportedScheme, "rua", "https://r.example/a"}, {dmarc.UnsupportedScheme, "rua", "https://r.example/b"}},
		},
		{
			name: "34 empty entry", rua: "mailto:a@example.com,,mailto:b@example.com",
			want: mailboxes("a@example.com", "b@example.com"), problems: bad(""),
		},
		{
			name: "35 percent-encoding", rua: "mailto:a%2Cb@example.com",
			want: []dmarc.URI{{Text: "mailto:a%2Cb@example.com", Scheme: "mailto", Address: "a,b@example.com", Host: "example.com"}},
		},
		{
			name: "header fields", rua: "mailto:a@example.com?subject=x",
			want: []dmarc.URI{{Text: "mailto:a@example.com?subject=x", Scheme: "mailto", Address: "a@example.com", Host: "example.com"}},
		},
		{name: "one good entry keeps the tag", rua: "nonsense,mailto:b@example.com", want: mailboxes("b@example.com"), problems: bad("nonsense")},
		{name: "empty", rua: "", problems: problems{{dmarc.InvalidValue, "rua", ""}}},
		{name: "scheme that begins with an underscore", rua: "__mailto:a@example.com", problems: bad("__mailto:a@example.com")},
		{name: "no address", rua: "mailto:", problems: bad("mailto:")},
		{name: "no at sign", rua: "mailto://example.com", problems: bad("mailto://example.com")},
		{name: "no local part", rua: "mailto:@example.com", problems: bad("mailto:@example.com")},
		{name: "no domain", rua: "mailto:a@", problems: bad("mailto:a@")},
		{name: "domain with an empty label", rua: "mailto:a@example..com", problems: bad("mailto:a@example..com")},
		{name: "address literal", rua: "mailto:a@[192.0.2.1]", problems: bad("mailto:a@[192.0.2.1]")},
		{name: "bad percent-encoding", rua: "mailto:a%2@example.com", problems: bad("mailto:a%2@example.com")},
		{name: "encoded control character", rua: "mailto:a%0D%0Ab@example.com", problems: bad("mailto:a%0D%0Ab@example.com")},
		{name: "space inside", rua: "mailto:a b@example.com", problems: bad("mailto:a b@example.com")},
		{name: "quotation marks", rua: `"mailto:a@example.com"`, problems: bad(`"mailto:a@example.com"`)},
		{name: "broken host", rua: "https://[::1/x", problems: bad("https://[::1/x")},
		{
			name: "the same twice", rua: "mailto:a@example.com,mailto:A@example.com",
			want:     mailboxes("a@example.com", "A@example.com"),
			problems: problems{{dmarc.DuplicateURI, "rua", "mailto:A@example.com"}},
		},
		{
			name: "three", rua: "mailto:a@example.com,mailto:b@example.com,mailto:c@example.com",
			want:     mailboxes("a@example.com", "b@example.com", "c@example.com"),
			problems: problems{{dmarc.TooManyURIs, "rua", "mailto:a@example.com,mailto:b@example.com,mailto:c@example.com"}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, _ := dmarc.Parse("v=DMARC1; p=none; rua=" + tt.rua)
			if r.State != dmarc.OK {
				t.Errorf("state: got %v want %v: destinations do not touch a valid policy", r.State, dmarc.OK)
			}
			if diff := cmp.Diff(tt.want, r.RUA); diff != "" {
				t.Errorf("rua (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.problems, r.Problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}
