package dmarc_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/dmarc"
)

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
