package outbound_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/outbound"
)

// errConnected stands for a connection that was tried.
var errConnected = errors.New("connected")

// dialled returns the addresses that a dialer connects to for host:993.
func dialled(t *testing.T, d outbound.Dialer, host string) ([]string, error) {
	t.Helper()
	var tried []string
	d.Connect = func(_ context.Context, network, address string) (net.Conn, error) {
		tried = append(tried, network+" "+address)
		return nil, errConnected
	}
	_, err := d.DialContext(t.Context(), "tcp", net.JoinHostPort(host, "993"))
	return tried, err
}

func TestDialContext(t *testing.T) {
	t.Parallel()
	zone := dnstest.New(strings.Join([]string{
		"public.example A 9.9.9.9", "public.example AAAA 2620:fe::fe",
		"private.example A 10.1.2.3", "private.example AAAA fd00::1",
		"mixed.example A 127.0.0.1", "mixed.example A 9.9.9.9", "mixed.example AAAA ::1",
		"alias.example CNAME private.example",
		"mapped.example AAAA ::ffff:127.0.0.1",
		"mail.example MX 10 public.example",
		"localhost A 127.0.0.1",
	}, "\n"))
	for _, row := range []struct {
		host  string
		tried string
		want  error
	}{
		{"public.example", "tcp 9.9.9.9:993,tcp [2620:fe::fe]:993", errConnected},
		{"PUBLIC.example.", "tcp 9.9.9.9:993,tcp [2620:fe::fe]:993", errConnected},
		{"mixed.example", "tcp 9.9.9.9:993", errConnected},
		{"9.9.9.9", "tcp 9.9.9.9:993", errConnected},
		{"::ffff:9.9.9.9", "tcp 9.9.9.9:993", errConnected},
		{"private.example", "", outbound.ErrNotAllowed},
		{"alias.example", "", outbound.ErrNotAllowed},
		{"mapped.example", "", outbound.ErrNotAllowed},
		{"localhost", "", outbound.ErrNotAllowed},
		{"127.0.0.1", "", outbound.ErrNotAllowed},
		{"::1", "", outbound.ErrNotAllowed},
		{"fe80::1%eth0", "", outbound.ErrNotAllowed},
		{"mail.example", "", dns.ErrNoAddress},
		{"nothing.example", "", dns.ErrNoAddress},
		// Other ways to write 127.0.0.1 that C libraries read are names here.
		{"127.1", "", dns.ErrNoAddress},
		{"2130706433", "", dns.ErrNoAddress},
		{"0x7f000001", "", dns.ErrNoAddress},
		{"0177.0.0.1", "", dns.ErrNoAddress},
		{"127.0.0.1.", "", dns.ErrNoAddress},
		{"", "", dns.ErrNoAddress},
	} {
		t.Run(row.host, func(t *testing.T) {
			t.Parallel()
			tried, err := dialled(t, outbound.Dialer{Resolver: zone}, row.host)
			if got := strings.Join(tried, ","); got != row.tried || !errors.Is(err, row.want) {
				t.Errorf("got %q and %v, want %q and %v", got, err, row.tried, row.want)
			}
		})
	}
}

// TestRejectionsAreTheSame wants no refusal to tell what is at an address.
func TestRejectionsAreTheSame(t *testing.T) {
	t.Parallel()
	output := map[string]bool{}
	for i, address := range []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "240.0.0.1"} {
		zone := dnstest.New("host.example A " + address)
		_, err := dialled(t, outbound.Dialer{Resolver: zone}, "host.example")
		output[fmt.Sprint(err)] = true
		if len(output) != 1 || strings.Contains(err.Error(), address) {
			t.Errorf("%d: got %v, want one text without an address", i, output)
		}
	}
}

// rebinding answers a public address first, and loopback from then on.
type rebinding struct{ asked atomic.Int32 }

func (r *rebinding) Resolve(_ context.Context, q dns.Question) dns.Answer {
	address := "9.9.9.9"
	if r.asked.Add(1) > 1 {
		address = "127.0.0.1"
	}
	if q.Type != dns.A {
		return dns.Answer{Question: q, Outcome: dns.NoData}
	}
	return dns.Answer{Question: q, Outcome: dns.Data, Records: []dns.Record{{Type: dns.A, Addr: netip.MustParseAddr(address)}}}
}

// TestRebinding connects to the address that was checked: the name is not resolved a
// second time between the two.
func TestRebinding(t *testing.T) {
	t.Parallel()
	d := outbound.Dialer{Resolver: &rebinding{}}
	if tried, err := dialled(t, d, "host.example"); len(tried) != 1 || tried[0] != "tcp 9.9.9.9:993" {
		t.Errorf("first: got %v and %v, want the public address", tried, err)
	}
	if tried, err := dialled(t, d, "host.example"); tried != nil || !errors.Is(err, outbound.ErrNotAllowed) {
		t.Errorf("second: got %v and %v, want a refusal", tried, err)
	}
}

// TestManyAddresses wants a host with hundreds of addresses to cost a few attempts.
func TestManyAddresses(t *testing.T) {
	t.Parallel()
	var records []string
	for i := range 200 {
		records = append(records, fmt.Sprintf("host.example A 9.9.9.%d", i), fmt.Sprintf("host.example AAAA 2620:fe::%d", i))
	}
	tried, _ := dialled(t, outbound.Dialer{Resolver: dnstest.New(strings.Join(records, "\n"))}, "host.example")
	if len(tried) != 8 {
		t.Errorf("got %d attempts, want 8", len(tried))
	}
}

// TestRealConnection connects to a listener on loopback, if that is allowed.
func TestRealConnection(t *testing.T) {
	t.Parallel()
	var accepted atomic.Int32
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			accepted.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	address := server.Listener.Addr().String()
	if _, err := (&outbound.Dialer{}).DialContext(t.Context(), "tcp", address); !errors.Is(err, outbound.ErrNotAllowed) {
		t.Errorf("got %v, want a refusal", err)
	}
	conn := musttest.Get((&outbound.Dialer{Allow: prefixes("127.0.0.0/8")}).DialContext(t.Context(), "tcp", address))(t)
	_ = conn.Close() // nothing was sent
	server.Close()   // waits until the state of the connection is known
	if got := accepted.Load(); got != 1 {
		t.Errorf("got %d connections, want the allowed one", got)
	}
}

// TestRedirectToLoopback follows a redirect from an allowed host to one that is not.
func TestRedirectToLoopback(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://127.0.0.1:1/secret", http.StatusFound)
	}))
	server.StartTLS()
	t.Cleanup(server.Close)
	d := &outbound.Dialer{
		Resolver: dnstest.New("example.com A 9.9.9.9"),
		Connect: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		},
	}
	client := d.Client(server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs)
	response, err := client.Get("https://example.com/")
	if err == nil {
		_ = response.Body.Close()
	}
	if !errors.Is(err, outbound.ErrNotAllowed) {
		t.Errorf("got %v, want a refusal of the redirect", err)
	}
	if response, err = client.Get("http://example.com/"); err == nil {
		_ = response.Body.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "only https") {
		t.Errorf("got %v, want no request without TLS", err)
	}
}

func prefixes(all ...string) []netip.Prefix {
	var parsed []netip.Prefix
	for _, p := range all {
		parsed = append(parsed, netip.MustParsePrefix(p))
	}
	return parsed
}

func TestPermits(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		address string
		allow   []netip.Prefix
		want    bool
	}{
		{name: "public IPv4", address: "9.9.9.9", want: true},
		{name: "public IPv4, first octet above 191", address: "193.0.14.129", want: true},
		{name: "public IPv4, last unicast", address: "223.255.255.254", want: true},
		{name: "beside CGNAT, below", address: "100.63.255.255", want: true},
		{name: "beside CGNAT, above", address: "100.128.0.0", want: true},
		{name: "beside private 172.16/12", address: "172.32.0.1", want: true},
		{name: "AS112, globally reachable", address: "192.175.48.1", want: true},
		{name: "public IPv6", address: "2620:fe::fe", want: true},
		{name: "public IPv6 of 2001, above the assignments", address: "2001:500:2::c", want: true},
		{name: "public IPv6, last of 2000::/3 but documentation", address: "3ffe::1", want: true},
		{name: "IPv4-mapped, public", address: "::ffff:9.9.9.9", want: true},

		{name: "the zero value", address: ""},
		{name: "unspecified IPv4", address: "0.0.0.0"},
		{name: "this network", address: "0.1.2.3"},
		{name: "loopback", address: "127.0.0.1"},
		{name: "loopback, last", address: "127.255.255.255"},
		{name: "private 10/8", address: "10.1.2.3"},
		{name: "private 172.16/12", address: "172.31.255.255"},
		{name: "private 192.168/16", address: "192.168.0.1"},
		{name: "link-local", address: "169.254.0.1"},
		{name: "metadata service", address: "169.254.169.254"},
		{name: "metadata service behind CGNAT", address: "100.100.100.200"},
		{name: "platform service of Azure", address: "168.63.129.16"},
		{name: "CGNAT, first", address: "100.64.0.0"},
		{name: "CGNAT, last", address: "100.127.255.255"},
		{name: "protocol assignments", address: "192.0.0.192"},
		{name: "documentation 1", address: "192.0.2.1"},
		{name: "documentation 2", address: "198.51.100.1"},
		{name: "documentation 3", address: "203.0.113.1"},
		{name: "6to4 relay", address: "192.88.99.1"},
		{name: "benchmarking", address: "198.19.255.255"},
		{name: "multicast", address: "224.0.0.1"},
		{name: "multicast, last", address: "239.255.255.255"},
		{name: "reserved", address: "240.0.0.1"},
		{name: "broadcast", address: "255.255.255.255"},

		{name: "unspecified IPv6", address: "::"},
		{name: "loopback IPv6", address: "::1"},
		{name: "IPv4-compatible, private", address: "::10.0.0.1"},
		{name: "IPv4-compatible, public", address: "::9.9.9.9"},
		{name: "IPv4-mapped, loopback", address: "::ffff:127.0.0.1"},
		{name: "IPv4-mapped, loopback, in hex", address: "::ffff:7f00:1"},
		{name: "IPv4-mapped, private", address: "::ffff:192.168.1.1"},
		{name: "IPv4-mapped, metadata service", address: "::ffff:169.254.169.254"},
		{name: "IPv4-translated, loopback", address: "::ffff:0:127.0.0.1"},
		{name: "IPv4-translated, public", address: "::ffff:0:9.9.9.9"},
		{name: "NAT64, loopback", address: "64:ff9b::127.0.0.1"},
		{name: "NAT64, public", address: "64:ff9b::9.9.9.9"},
		{name: "NAT64, local prefix", address: "64:ff9b:1::10.0.0.1"},
		{name: "6to4, loopback", address: "2002:7f00:1::1"},
		{name: "6to4, public", address: "2002:909:909::1"},
		{name: "Teredo", address: "2001:0:4136:e378:8000:63bf:3fff:fdd2"},
		{name: "ORCHIDv2", address: "2001:20::1"},
		{name: "benchmarking IPv6", address: "2001:2::1"},
		{name: "documentation IPv6", address: "2001:db8::1"},
		{name: "documentation IPv6, second", address: "3fff::1"},
		{name: "discard", address: "100::1"},
		{name: "segment routing", address: "5f00::1"},
		{name: "unassigned", address: "4000::1"},
		{name: "ULA fc00", address: "fc00::1"},
		{name: "ULA fd00", address: "fd00:ec2::254"},
		{name: "link-local IPv6", address: "fe80::1"},
		{name: "link-local IPv6 with zone", address: "fe80::1%eth0"},
		{name: "public IPv6 with zone", address: "2620:fe::fe%eth0"},
		{name: "site-local", address: "fec0::1"},
		{name: "multicast IPv6, link", address: "ff02::1"},
		{name: "multicast IPv6, global", address: "ff0e::1"},

		{name: "allowed private", address: "10.1.2.3", allow: prefixes("10.0.0.0/8"), want: true},
		{name: "allowed private, IPv4-mapped", address: "::ffff:10.1.2.3", allow: prefixes("10.0.0.0/8"), want: true},
		{name: "allowed loopback IPv6", address: "::1", allow: prefixes("::1/128"), want: true},
		{name: "allowed NAT64", address: "64:ff9b::10.1.2.3", allow: prefixes("64:ff9b::/96"), want: true},
		{name: "outside of what is allowed", address: "10.2.0.0", allow: prefixes("10.1.0.0/16")},
		{name: "NAT64 of an allowed IPv4", address: "64:ff9b::10.1.2.3", allow: prefixes("10.0.0.0/8")},
		{name: "6to4 of an allowed IPv4", address: "2002:a01:203::1", allow: prefixes("10.0.0.0/8")},
		{name: "IPv4-compatible of an allowed IPv4", address: "::10.1.2.3", allow: prefixes("10.0.0.0/8")},
		{name: "IPv4-translated of an allowed IPv4", address: "::ffff:0:10.1.2.3", allow: prefixes("10.0.0.0/8")},
		{name: "all of IPv4 allowed, IPv6 asked for", address: "::1", allow: prefixes("0.0.0.0/0")},
		{name: "zone in an allowed network", address: "fe80::1%eth0", allow: prefixes("fe80::/10")},
		{name: "public although something else is allowed", address: "9.9.9.9", allow: prefixes("10.0.0.0/8"), want: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var address netip.Addr
			if row.address != "" {
				address = netip.MustParseAddr(row.address)
			}
			if got := (&outbound.Dialer{Allow: row.allow}).Permits(address); got != row.want {
				t.Errorf("%s: got %v, want %v", row.address, got, row.want)
			}
		})
	}
}
