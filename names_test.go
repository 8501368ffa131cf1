package dmarcd_test

import (
	"slices"
	"testing"

	"github.com/dmarcd/dmarcd"
)

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
