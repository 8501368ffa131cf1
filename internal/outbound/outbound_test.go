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

// TestRefusalsAreTheSame wants no refusal to tell what is at an address.
func TestRefusalsAreTheSame(t *testing.T) {
	t.Parallel()
	said := map[string]bool{}
	for i, address := range []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "240.0.0.1"} {
		zone := dnstest.New("host.example A " + address)
		_, err := dialled(t, outbound.Dialer{Resolver: zone}, "host.example")
		said[fmt.Sprint(err)] = true
		if len(said) != 1 || strings.Contains(err.Error(), address) {
			t.Errorf("%d: got %v, want one text without an address", i, said)
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

// TestRebinding connects to the address that was judged: the name is not resolved a
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
