package bimi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd/bimi"
)

const (
	logo  = "https://example.com/logo.svg"
	chain = "https://example.com/mark.pem"
)

func TestParse(t *testing.T) {
	t.Parallel()
	type problems = []bimi.Problem
	long := strings.Repeat("a", 64)
	for _, tt := range []struct {
		name string
		txt  string
		want bimi.Record // without Text and Tags
	}{
		{name: "image and evidence", txt: "v=BIMI1; l=" + logo + "; a=" + chain, want: bimi.Record{Location: logo, Evidence: chain}},
		{name: "any order, no blanks, a last semicolon", txt: "v=BIMI1;a=" + chain + ";l=" + logo + ";", want: bimi.Record{Location: logo, Evidence: chain}},
		{name: "white space around everything", txt: "v = BIMI1 ;\tl\t=\t" + logo + " ; a = " + chain + " ; ", want: bimi.Record{Location: logo, Evidence: chain}},
		{
			name: "no evidence", txt: "v=BIMI1; l=" + logo,
			want: bimi.Record{Location: logo, Problems: problems{{bimi.NoEvidence, "a", ""}}},
		},
		{
			name: "empty evidence", txt: "v=BIMI1; l=" + logo + "; a=",
			want: bimi.Record{Location: logo, Problems: problems{{bimi.NoEvidence, "a", ""}}},
		},
		{name: "97 declined", txt: "v=BIMI1; l=; a=;", want: bimi.Record{State: bimi.Declined}},
		{name: "declined without a", txt: "v=BIMI1; l=", want: bimi.Record{State: bimi.Declined}},
		{name: "declined but for some local parts", txt: "v=BIMI1; l=; a=; lps=news", want: bimi.Record{State: bimi.Declined, LocalParts: []string{"news"}}},
		{name: "version alone", txt: "v=BIMI1", want: bimi.Record{State: bimi.Invalid, Problems: problems{{bimi.MissingTag, "l", ""}}}},
		{name: "a alone", txt: "v=BIMI1; a=", want: bimi.Record{State: bimi.Invalid, Problems: problems{{bimi.MissingTag, "l", ""}}}},
		{
			name: "evidence without an image", txt: "v=BIMI1; l=; a=" + chain,
			want: bimi.Record{State: bimi.Invalid, Evidence: chain, Problems: problems{{bimi.EvidenceWithoutLocation, "a", chain}}},
		},
		{
			name: "local parts and avatar", txt: "v=BIMI1; l=" + logo + "; a=" + chain + "; lps=news, Sales-2 ,x; avp=personal",
			want: bimi.Record{Location: logo, Evidence: chain, LocalParts: []string{"news", "Sales-2", "x"}, Avatar: bimi.Personal},
		},
		{name: "the default avatar", txt: "v=BIMI1; l=" + logo + "; a=" + chain + "; avp=brand", want: bimi.Record{Location: logo, Evidence: chain}},
		{
			name: "one bad local part spoils the list", txt: "v=BIMI1; l=; lps=news,no_underscore",
			want: bimi.Record{State: bimi.Declined, Problems: problems{{bimi.InvalidValue, "lps", "news,no_underscore"}}},
		},
		{
			name: "an empty local part", txt: "v=BIMI1; l=; lps=news,",
			want: bimi.Record{State: bimi.Declined, Problems: problems{{bimi.InvalidValue, "lps", "news,"}}},
		},
		{
			name: "a local part of 64 characters", txt: "v=BIMI1; l=; lps=" + long,
			want: bimi.Record{State: bimi.Declined, Problems: problems{{bimi.InvalidValue, "lps", long}}},
		},
		{
			name: "an unknown avatar is ignored", txt: "v=BIMI1; l=; avp=Personal",
			want: bimi.Record{State: bimi.Declined, Problems: problems{{bimi.InvalidValue, "avp", "Personal"}}},
		},
		{
			name: "http", txt: "v=BIMI1; l=http://example.com/logo.svg",
			want: bimi.Record{State: bimi.Invalid, Problems: problems{{bimi.NotHTTPS, "l", "http://example.com/logo.svg"}}},
		},
		{
			name: "bad evidence voids the record", txt: "v=BIMI1; l=" + logo + "; a=ftp://example.com/x",
			want: bimi.Record{State: bimi.Invalid, Location: logo, Problems: problems{{bimi.NotHTTPS, "a", "ftp://example.com/x"}}},
		},
		{
			name: "two URIs", txt: "v=BIMI1; l=" + logo + "," + logo,
			want: bimi.Record{State: bimi.Invalid, Problems: problems{{bimi.SeveralURIs, "l", logo + "," + logo}}},
		},
		{
			name: "another image format", txt: "v=BIMI1; l=https://example.com/logo.PNG?x=1; a=" + chain,
			want: bimi.Record{State: bimi.Invalid, Location: "https://example.com/logo.PNG?x=1", Evidence: chain, Problems: problems{{bimi.UnsupportedFormat, "l", "https://example.com/logo.PNG?x=1"}}},
		},
		{
			name: "a path without a suffix may be an SVG", txt: "v=BIMI1; l=HTTPS://cdn.example.com:8443/logo; a=" + chain,
			want: bimi.Record{Location: "HTTPS://cdn.example.com:8443/logo", Evidence: chain},
		},
		{
			name: "unknown tags are ignored", txt: "v=BIMI1; l=; x_1=y; z=",
			want: bimi.Record{State: bimi.Declined, Problems: problems{{bimi.UnknownTag, "x_1", "y"}, {bimi.UnknownTag, "z", ""}}},
		},
		{
			name: "the case of a tag is not repaired", txt: "v=BIMI1; L=" + logo,
			want: bimi.Record{State: bimi.Invalid, Problems: problems{{bimi.TagCase, "l", "L"}, {bimi.MissingTag, "l", ""}}},
		},
		{
			name: "a tag twice", txt: "v=BIMI1; l=" + logo + "; l=",
			want: bimi.Record{State: bimi.Invalid, Location: logo, Problems: problems{{bimi.DuplicateTag, "l", ""}}},
		},
		{
			name: "the version twice", txt: "v=BIMI1; v=BIMI1; l=",
			want: bimi.Record{State: bimi.Invalid, Problems: problems{{bimi.DuplicateTag, "v", "BIMI1"}}},
		},
		{
			name: "no tag", txt: "v=BIMI1; l=; " + logo,
			want: bimi.Record{State: bimi.Invalid, Problems: problems{{bimi.MalformedElement, "", logo}}},
		},
		{
			name: "a name that is none", txt: "v=BIMI1; l=; 1x=y",
			want: bimi.Record{State: bimi.Invalid, Problems: problems{{bimi.MalformedElement, "", "1x=y"}}},
		},
		{
			name: "nothing between two semicolons", txt: "v=BIMI1;; l=",
			want: bimi.Record{State: bimi.Declined, Problems: problems{{bimi.EmptyElement, "", ""}}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := bimi.Parse(tt.txt)
			if !ok || got.Text != tt.txt {
				t.Fatalf("got ok %v, text %q", ok, got.Text)
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(bimi.Record{}, "Text", "Tags"), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseURI(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		uri  string
		want bimi.Kind // "" if valid
	}{
		{"a port, a query and a fragment", "https://a.example.com:444/x.svgz?y#z", ""},
		{"an encoded comma", "https://example.com/a%2Cb.svg", ""},
		{"an underscore in the host", "https://my_cdn.example.com/x.svg", ""},
		{"a trailing dot", "https://example.com./x.svg", ""},
		{"no scheme", "example.com/x.svg", bimi.BadURI},
		{"no host", "https:///x.svg", bimi.BadURI},
		{"a host of one label", "https://localhost/x.svg", bimi.BadURI},
		{"an IPv4 address", "https://192.0.2.1/x.svg", bimi.BadURI},
		{"an IPv6 address", "https://[2001:db8::1]/x.svg", bimi.BadURI},
		{"a user", "https://me@example.com/x.svg", bimi.BadURI},
		{"an empty label", "https://example..com/x.svg", bimi.BadURI},
		{"a label that begins with a hyphen", "https://-a.example.com/x.svg", bimi.BadURI},
		{"a blank", "https://example.com/my logo.svg", bimi.BadURI},
		{"not ASCII", "https://example.com/é.svg", bimi.BadURI},
		{"a bad escape", "https://example.com/%zz", bimi.BadURI},
		{"data", "data:image/svg+xml", bimi.NotHTTPS},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, _ := bimi.Parse("v=BIMI1; a=; l=" + tt.uri)
			var kind bimi.Kind
			if got.Problems[0].Kind != bimi.NoEvidence {
				kind = got.Problems[0].Kind
			}
			if kind != tt.want {
				t.Errorf("got %q want %q", kind, tt.want)
			}
			if valid := got.Location != ""; valid != (tt.want == "") {
				t.Errorf("got location %q", got.Location)
			}
		})
	}
}

func TestParseIsNotARecord(t *testing.T) {
	t.Parallel()
	for _, txt := range []string{
		"", "v", "v=", "v=BIMI", "v=bimi1; l=", "V=BIMI1; l=", " v=BIMI1; l=", "v=BIMI10; l=", "v=BIMI1 l=", "v=BIMI1, l=",
		"l=; v=BIMI1", "v=DMARC1; p=none", "v=spf1 -all", `"v=BIMI1; l="`, "vx=BIMI1",
	} {
		t.Run(txt, func(t *testing.T) {
			t.Parallel()
			if got, ok := bimi.Parse(txt); ok {
				t.Errorf("got %+v want no record", got)
			}
		})
	}
}

func TestParseHasLimits(t *testing.T) {
	t.Parallel()
	var tags, parts strings.Builder
	for i := range 150 {
		fmt.Fprintf(&tags, "; t%d=%s", i, strings.Repeat("ü", 400))
		fmt.Fprintf(&parts, "p%d,", i)
	}
	got, _ := bimi.Parse("v=BIMI1; lps=" + parts.String() + "z" + tags.String())
	if len(got.Tags) != 100 || len(got.Problems) != 100 || len(got.LocalParts) != 0 {
		t.Errorf("got %d tags, %d problems, %d local parts; want 100, 100, 0", len(got.Tags), len(got.Problems), len(got.LocalParts))
	}
	if text := got.Problems[1].Text; len(text) != 500 || strings.ContainsRune(text, '\uFFFD') {
		t.Errorf("got a text of %d bytes want 500: %q", len(text), text)
	}
	got, _ = bimi.Parse("v=BIMI1; l=" + strings.Repeat("; x=", 100))
	want := []bimi.Problem{{bimi.UnknownTag, "x", ""}, {bimi.DuplicateTag, "x", ""}, {bimi.TooManyTags, "", "x="}}
	if !slices.Equal(got.Problems, want) {
		t.Errorf("got problems %v want %v", got.Problems, want)
	}
}

func TestRecordString(t *testing.T) {
	t.Parallel()
	record := bimi.Record{Location: logo, Evidence: chain, LocalParts: []string{"a", "b"}, Avatar: bimi.Personal}
	if got, want := record.String(), "v=BIMI1; l="+logo+"; a="+chain+"; lps=a,b; avp=personal"; got != want {
		t.Errorf("got %q want %q", got, want)
	}
	if got, want := (bimi.Record{}).String(), "v=BIMI1; l=; a="; got != want {
		t.Errorf("got %q want %q", got, want)
	}
}

func TestStateString(t *testing.T) {
	t.Parallel()
	for state, want := range map[bimi.State]string{bimi.OK: "ok", bimi.Declined: "declined", bimi.Invalid: "invalid"} {
		if got := state.String(); got != want {
			t.Errorf("got %q want %q", got, want)
		}
	}
}
