package reporturi_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/reporturi"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       reporturi.URI // without Text; the zero value if it is not a URI
	}{
		{"mail address", "mailto:a@example.com", reporturi.URI{Scheme: "mailto", Address: "a@example.com", Host: "example.com"}},
		{"upper case", "MAILTO:A@Example.COM", reporturi.URI{Scheme: "mailto", Address: "A@Example.COM", Host: "example.com"}},
		{"percent-encoding", "mailto:a%2Cb@example.com", reporturi.URI{Scheme: "mailto", Address: "a,b@example.com", Host: "example.com"}},
		{"encoded at sign", "mailto:a%40example.com", reporturi.URI{Scheme: "mailto", Address: "a@example.com", Host: "example.com"}},
		{"header fields", "mailto:a@example.com?subject=x", reporturi.URI{Scheme: "mailto", Address: "a@example.com", Host: "example.com"}},
		{"at sign in the local part", "mailto:a@b@example.com", reporturi.URI{Scheme: "mailto", Address: "a@b@example.com", Host: "example.com"}},
		{"underscore in the domain", "mailto:a@_x.example.com", reporturi.URI{Scheme: "mailto", Address: "a@_x.example.com", Host: "_x.example.com"}},
		{"web address", "https://Example.com:8443/a?b=c", reporturi.URI{Scheme: "https", Host: "example.com"}},
		{"web address without a host", "https:///path", reporturi.URI{Scheme: "https"}},
		{"scheme of all characters", "a+b-c.1:x", reporturi.URI{Scheme: "a+b-c.1"}},
		{"no address", "mailto:", reporturi.URI{}},
		{"no at sign", "mailto:example.com", reporturi.URI{}},
		{"no local part", "mailto:@example.com", reporturi.URI{}},
		{"no domain", "mailto:a@", reporturi.URI{}},
		{"address literal", "mailto:a@[192.0.2.1]", reporturi.URI{}},
		{"domain with an empty label", "mailto:a@example..com", reporturi.URI{}},
		{"domain with an encoded space", "mailto:a@exa%20mple.com", reporturi.URI{}},
		{"encoded control character", "mailto:a%0A@example.com", reporturi.URI{}},
		{"encoding that is not UTF-8", "mailto:a%FF@example.com", reporturi.URI{}},
		{"bad percent-encoding", "mailto:a%2@example.com", reporturi.URI{}},
		{"percent sign at the end", "mailto:a@example.com%2", reporturi.URI{}},
		{"space", "mailto:a b@example.com", reporturi.URI{}},
		{"comma", "mailto:a,b@example.com", reporturi.URI{}},
		{"exclamation mark", "mailto:a@example.com!10m", reporturi.URI{}},
		{"semicolon", "mailto:a;b@example.com", reporturi.URI{}},
		{"broken host", "https://[::1/", reporturi.URI{}},
		{"scheme that begins with a digit", "1https://example.com/", reporturi.URI{}},
		{"empty scheme", "://example.com", reporturi.URI{}},
		{"no scheme", "a@example.com", reporturi.URI{}},
		{"empty", "", reporturi.URI{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			wanted := tt.want != reporturi.URI{}
			got, ok := reporturi.Parse(tt.text)
			if ok != wanted {
				t.Fatalf("Parse(%q): got %v, want %v", tt.text, ok, wanted)
			}
			tt.want.Text = tt.text
			if diff := cmp.Diff(tt.want, got); wanted && diff != "" {
				t.Errorf("Parse(%q) (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}
