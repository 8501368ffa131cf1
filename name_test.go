package dmarcd_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
)

func TestParseName(t *testing.T) {
	t.Parallel()
	label63 := strings.Repeat("a", 63)
	name253 := strings.Join([]string{label63, label63, label63, strings.Repeat("b", 57), "com"}, ".")
	for _, test := range []struct{ name, in, want string }{
		{"plain", "example.com", "example.com"},
		{"upper case", "EXAMPLE.Com", "example.com"},
		{"trailing dot", "example.com.", "example.com"},
		{"blanks around", " \texample.com\r\n", "example.com"},
		{"digits and hyphens", "3-4.a--b.c0m", "3-4.a--b.c0m"},
		{"Unicode", "bücher.example", "xn--bcher-kva.example"},
		{"Unicode in upper case", "BÜCHER.example", "xn--bcher-kva.example"},
		{"A-label", "XN--BCHER-KVA.example", "xn--bcher-kva.example"},
		{"Unicode top level", "例え.テスト", "xn--r8jz45g.xn--zckzah"},
		{"ideographic full stop", "例え。テスト", "xn--r8jz45g.xn--zckzah"},
		{"longest label", label63 + ".com", label63 + ".com"},
		{"longest name", name253, name253},
		{"many labels", strings.Repeat("a.", 126) + "b", strings.Repeat("a.", 126) + "b"},

		{"empty", "", ""},
		{"blank", "  ", ""},
		{"dot", ".", ""},
		{"single label", "localhost", ""},
		{"leading dot", ".example.com", ""},
		{"two dots inside", "example..com", ""},
		{"two trailing dots", "example.com..", ""},
		{"label too long", label63 + "a.com", ""},
		{"name too long", "c" + name253, ""},
		{"far too long", strings.Repeat("a.", 100000) + "com", ""},
		{"underscore", "_dmarc.example.com", ""},
		{"leading hyphen", "-a.example", ""},
		{"trailing hyphen", "a-.example", ""},
		{"IPv4 address", "192.0.2.1", ""},
		{"IPv6 address", "2001:db8::1", ""},
		{"address in brackets", "[192.0.2.1]", ""},
		{"top level all digits", "example.123", ""},
		{"URL", "https://example.com", ""},
		{"path", "example.com/x", ""},
		{"wildcard", "*.example.com", ""},
		{"port", "example.com:25", ""},
		{"mail address", "postmaster@example.com", ""},
		{"blank inside", "exa mple.com", ""},
		{"NUL", "exam\x00ple.com", ""},
		{"bad UTF-8", "ex\xffample.com", ""},
		{"bad A-label", "xn--a.example", ""},
		{"emptied by IDNA", "\u00ad.example", ""},
		{"percent sign", "example%2ecom", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := dmarcd.ParseName(test.in)
			if got != test.want || (err == nil) != (test.want != "") {
				t.Errorf("ParseName(%.80q) = %q, %v; want %q", test.in, got, err, test.want)
			}
			if err != nil && !errors.Is(err, dmarcd.ErrInvalid) {
				t.Errorf("error %v is not ErrInvalid", err)
			}
		})
	}
}

func FuzzParseName(f *testing.F) {
	for _, seed := range []string{"example.com", "BÜCHER.example.", "例え。テスト", "xn--bcher-kva.example", "a..b", "1.2.3.4", "*.x.y", "ﬀ.example", "K.example"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		name, err := dmarcd.ParseName(in)
		if err != nil {
			if name != "" || !errors.Is(err, dmarcd.ErrInvalid) {
				t.Fatalf("ParseName(%q) = %q, %v", in, name, err)
			}
			return
		}
		if again, err := dmarcd.ParseName(name); err != nil || again != name {
			t.Fatalf("ParseName(%q) = %q, but of that %q, %v", in, name, again, err)
		}
		if len(name) > 253 || name != strings.ToLower(name) || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" ||
			strings.Contains(name, "..") || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") || !strings.Contains(name, ".") {
			t.Fatalf("ParseName(%q) = %q, which is no name", in, name)
		}
		if upper, err := dmarcd.ParseName(" " + strings.ToUpper(name) + ". "); err != nil || upper != name {
			t.Fatalf("%q in upper case is %q, %v", name, upper, err)
		}
	})
}

func TestNamesIn(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, text        string
		names, unreadable []string
	}{
		{"one", " Example.COM. ", []string{"example.com"}, nil},
		{"a list", "example.com, example.net\nexample.org;example.com", []string{"example.com", "example.net", "example.org"}, nil},
		{"URLs", "https://example.com:8443/path?x=1 example.net/login", []string{"example.com", "example.net"}, nil},
		{"addresses", "Ada <ada@example.com> mailto:bob@example.net", []string{"example.com", "example.net"}, []string{"Ada"}},
		{"a zone file", "$ORIGIN example.com.\n@ 3600 IN SOA ns1 hostmaster 1 2 3 4 5\nwww A 192.0.2.1\n", []string{"example.com"}, nil},
		{"a zone file without an origin", "example.com. 3600 IN SOA ns1 hostmaster 1 2 3 4 5\nwww.example.com. A 192.0.2.1\n", []string{"example.com"}, nil},
		{"nothing", "localhost -", nil, []string{"localhost", "-"}},
		{"U-labels", "bücher.example", []string{"xn--bcher-kva.example"}, nil},
	} {
		names, unreadable := dmarcd.NamesIn(row.text)
		if !slices.Equal(names, row.names) || !slices.Equal(unreadable, row.unreadable) {
			t.Errorf("%s: got %q and %q unreadable, want %q and %q", row.name, names, unreadable, row.names, row.unreadable)
		}
	}
}
