package clientaddr_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/clientaddr"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// prefixes reads a list with blanks between.
func prefixes(t *testing.T, text string) []netip.Prefix {
	t.Helper()
	var list []netip.Prefix
	for word := range strings.FieldsSeq(text) {
		prefix := musttest.Get(netip.ParsePrefix(word))(t)
		list = append(list, prefix)
	}
	return list
}

func TestBehind(t *testing.T) {
	t.Parallel()
	const (
		proxy   = "10.0.0.1:51000"
		trusted = "10.0.0.0/24 2001:db8:1::/64"
	)
	for _, row := range []struct {
		name    string
		proxies string
		peer    string
		lines   []string
		want    string // the RemoteAddr that is seen
	}{
		{"no proxy is believed", "", proxy, []string{"198.51.100.7"}, proxy},
		{"the peer is no proxy", trusted, "203.0.113.9:4711", []string{"198.51.100.7"}, "203.0.113.9:4711"},
		{"a neighbour of the proxies is none", trusted, "10.0.1.1:4711", []string{"198.51.100.7"}, "10.0.1.1:4711"},
		{"the proxy says nothing", trusted, proxy, nil, proxy},
		{"one proxy", trusted, proxy, []string{"198.51.100.7"}, "198.51.100.7:0"},
		{"two proxies", trusted, proxy, []string{"198.51.100.7, 10.0.0.2"}, "198.51.100.7:0"},
		{"two proxies, a line each", trusted, proxy, []string{"198.51.100.7", "10.0.0.2"}, "198.51.100.7:0"},
		{"proxies of both families", trusted, "[2001:db8:1::1]:51000", []string{"2001:db8:2::7, 10.0.0.2"}, "[2001:db8:2::7]:0"},
		{"no blanks", trusted, proxy, []string{"198.51.100.7,10.0.0.2,10.0.0.3"}, "198.51.100.7:0"},
		{"tabs and blanks", trusted, proxy, []string{"\t198.51.100.7 ,\t10.0.0.2 "}, "198.51.100.7:0"},
		{"from a proxy itself", trusted, proxy, []string{"10.0.0.9"}, "10.0.0.9:0"},
		{"an entry with a port", trusted, proxy, []string{"198.51.100.7:60000"}, "198.51.100.7:0"},
		{"an IPv6 entry with a port", trusted, proxy, []string{"[2001:db8:2::7]:60000"}, "[2001:db8:2::7]:0"},
		{"an IPv6 entry in brackets", trusted, proxy, []string{"[2001:db8:2::7]"}, "[2001:db8:2::7]:0"},
		{"IPv4 in the clothes of IPv6", trusted, proxy, []string{"::ffff:198.51.100.7"}, "198.51.100.7:0"},
		{"the peer in the clothes of IPv6", trusted, "[::ffff:10.0.0.1]:51000", []string{"198.51.100.7"}, "198.51.100.7:0"},
		{"a peer with a zone", "fe80::/10", "[fe80::1%eth0]:51000", []string{"198.51.100.7"}, "198.51.100.7:0"},

		// What a client makes up stands before what the proxies append.
		{"a made-up client", trusted, proxy, []string{"192.0.2.66, 198.51.100.7"}, "198.51.100.7:0"},
		{"a made-up line", trusted, proxy, []string{"192.0.2.66", "198.51.100.7"}, "198.51.100.7:0"},
		{"a made-up proxy", trusted, proxy, []string{"192.0.2.66, 10.0.0.2, 198.51.100.7"}, "198.51.100.7:0"},
		{"garbage before the client", trusted, proxy, []string{"<script>, , 198.51.100.7"}, "198.51.100.7:0"},
		{"commas before the client", trusted, proxy, []string{strings.Repeat(",", 60_000) + "198.51.100.7"}, "198.51.100.7:0"},

		// A proxy that does not name the client leaves it unknown.
		{"garbage", trusted, proxy, []string{"unknown"}, proxy},
		{"garbage behind a proxy", trusted, proxy, []string{"192.0.2.66, unknown, 10.0.0.2"}, proxy},
		{"an empty line", trusted, proxy, []string{""}, proxy},
		{"an empty entry", trusted, proxy, []string{"198.51.100.7,"}, proxy},
		{"an empty last line", trusted, proxy, []string{"198.51.100.7", ""}, proxy},
		{"a name", trusted, proxy, []string{"client.example"}, proxy},
		{"a network", trusted, proxy, []string{"198.51.100.0/24"}, proxy},
		{"a number out of range", trusted, proxy, []string{"198.51.100.256"}, proxy},
		{"an octal number", trusted, proxy, []string{"0306.063.0144.7"}, proxy},
		{"half a bracket", trusted, proxy, []string{"[2001:db8:2::7"}, proxy},
		{"a quoted entry", trusted, proxy, []string{`"198.51.100.7"`}, proxy},
		{"a zone is not written down", trusted, proxy, []string{"fe80::7%<script>"}, "[fe80::7]:0"},
		{"all proxies, and no end", trusted, proxy, []string{strings.Repeat("10.0.0.2,", 7_000) + "10.0.0.3"}, "10.0.0.2:0"},
		{"a peer that is no address", trusted, "@", []string{"198.51.100.7"}, "@"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			request := httptest.NewRequest(http.MethodGet, "/", nil)
			request.RemoteAddr = row.peer
			request.Header["X-Forwarded-For"] = row.lines
			var got string
			clientaddr.Behind(prefixes(t, row.proxies), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				got = r.RemoteAddr
			})).ServeHTTP(httptest.NewRecorder(), request)
			if got != row.want {
				t.Errorf("got %q want %q", got, row.want)
			}
			if request.RemoteAddr != row.peer {
				t.Errorf("the request that was given has changed: got %q want %q", request.RemoteAddr, row.peer)
			}
		})
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"198.51.100.7:4711":   "198.51.100.7",
		"[2001:db8::7]:4711":  "2001:db8::7",
		"[2001:db8::7]:0":     "2001:db8::7",
		"[fe80::7%eth0]:4711": "fe80::7%eth0",
		"@":                   "@",
		"":                    "",
	} {
		if got := clientaddr.Of(&http.Request{RemoteAddr: remote}); got != want {
			t.Errorf("%q: got %q want %q", remote, got, want)
		}
	}
}

func TestSiteOf(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"192.0.2.77":             "192.0.2.0/24",
		"::ffff:192.0.2.77":      "192.0.2.0/24",
		"2001:db8:1:2:3:4:5:6":   "2001:db8:1::/48",
		"2001:db8:1:ffff::6%en0": "2001:db8:1::/48",
	} {
		if got := clientaddr.SiteOf(netip.MustParseAddr(address)).String(); got != want {
			t.Errorf("%s: got %s want %s", address, got, want)
		}
	}
	if got := clientaddr.SiteOf(netip.Addr{}); got.IsValid() {
		t.Errorf("no address: got %s want the zero value", got)
	}
}
