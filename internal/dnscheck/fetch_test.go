package dnscheck_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/outbound"
	"github.com/dmarcd/dmarcd/internal/starttls"
)

// inside are addresses that no check may connect to.
var inside = []string{
	"A 0.0.0.0", "A 0.1.2.3", "A 10.1.2.3", "A 10.255.255.255", "A 100.64.0.1", "A 100.127.255.254", "A 127.0.0.1", "A 127.255.255.254",
	"A 168.63.129.16", "A 169.254.0.1", "A 169.254.169.254", "A 172.16.0.1", "A 172.31.255.254", "A 192.0.0.1", "A 192.0.2.1", "A 192.88.99.1",
	"A 192.168.1.1", "A 198.18.0.1", "A 198.51.100.1", "A 203.0.113.1", "A 224.0.0.1", "A 239.255.255.255", "A 240.0.0.1", "A 255.255.255.255",
	"AAAA ::", "AAAA ::1", "AAAA ::10.0.0.1", "AAAA ::ffff:127.0.0.1", "AAAA ::ffff:169.254.169.254", "AAAA ::ffff:0:127.0.0.1",
	"AAAA 64:ff9b::7f00:1", "AAAA 64:ff9b:1::a00:1", "AAAA 100::1", "AAAA 2001::f5ff:fffe", "AAAA 2001:db8::1", "AAAA 2002:7f00:1::1",
	"AAAA 3fff::1", "AAAA fc00::1", "AAAA fd12:3456::1", "AAAA fe80::1", "AAAA fec0::1", "AAAA ff02::1",
}

var bothRecords = without("mx.example.com          A") + `_mta-sts.example.com TXT "v=STSv1; id=1"
default._bimi.example.com TXT "v=BIMI1; l=https://www.example.com/l.svg; a=https://www.example.com/a.pem"
`

// prober returns the options of a check that reads the certificates of mail servers, all with
// one way to connect.
func prober(zone dns.Resolver, dialer outbound.Dialer) dnscheck.Options {
	reader := starttls.New(starttls.Options{Dial: dialer.With(zone).DialContext, Hostname: "dmarcd.example", Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	return dnscheck.Options{Resolver: zone, Now: noon, Dialer: dialer, DialMX: reader.Certificates}
}

// TestPrivateAddresses checks domains whose mail server, MTA-STS policy, BIMI logo and
// certificate are on hosts with addresses that are not public.
func TestPrivateAddresses(t *testing.T) {
	t.Parallel()
	if len(inside) < 40 {
		t.Fatalf("only %d forms", len(inside))
	}
	for _, address := range inside {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			zone := dnstest.New(bothRecords + "mta-sts.example.com " + address + "\nwww.example.com " + address + "\nmx.example.com " + address)
			dialled := new(connections)
			options := prober(zone, outbound.Dialer{Connect: dialled.connect})
			dial, mailServer := options.DialMX, error(nil)
			options.DialMX = func(ctx context.Context, host, name string) (chain []*x509.Certificate, err error) {
				chain, mailServer = dial(ctx, host, name)
				return chain, mailServer
			}
			facts := dnscheck.New(options).Examine(t.Context(), dnscheck.Request{Domain: "example.com"}).Facts
			for name, reason := range map[string]string{"MTA-STS": facts.MTASTS.FetchReason, "BIMI": facts.BIMI.Reason, "MX": fmt.Sprint(mailServer)} {
				if !strings.Contains(reason, outbound.ErrNotAllowed.Error()) {
					t.Errorf("%s: got the reason %q, want that of every refused address", name, reason)
				}
			}
			if len(dialled.addresses) != 0 {
				t.Errorf("got connections to %v", dialled.addresses)
			}
		})
	}
}

// connections records to which addresses connections are made, and fails them.
type connections struct {
	mu        sync.Mutex
	addresses []string
}

func (c *connections) connect(_ context.Context, _, address string) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addresses = append(c.addresses, address)
	return nil, errNoServer
}

// rebound answers the first query for the address of each of two hosts with a public one, and
// all later ones with loopback.
type rebound struct {
	dns.Resolver

	web, mail atomic.Int32
}

func (r *rebound) Resolve(ctx context.Context, q dns.Question) dns.Answer {
	asked := map[string]*atomic.Int32{"mta-sts.example.com": &r.web, "www.example.com": &r.web, "mx.example.com": &r.mail}[q.Name]
	if q.Type != dns.A || asked == nil {
		return r.Resolver.Resolve(ctx, q)
	}
	address := "127.0.0.1"
	if asked.Add(1) == 1 {
		address = "9.9.9.9"
	}
	return dns.Answer{Question: q, Outcome: dns.Data, Records: []dns.Record{{Type: dns.A, Addr: netip.MustParseAddr(address)}}}
}

// TestRebinding wants the address that is dialled to be checked, whatever a name resolved to
// before.
func TestRebinding(t *testing.T) {
	t.Parallel()
	dialled := new(connections)
	options := prober(&rebound{Resolver: dnstest.New(bothRecords)}, outbound.Dialer{Connect: dialled.connect})
	for range 3 {
		dnscheck.New(options).Examine(t.Context(), dnscheck.Request{Domain: "example.com"})
	}
	// A logo and its certificate are on one host, which is resolved once in a check.
	got := dialled.addresses
	if len(got) == 0 || slices.ContainsFunc(got, func(address string) bool { return address != "9.9.9.9:443" }) {
		t.Errorf("got connections to %v, want those to the public address alone", got)
	}
}

// TestRedirectsInside redirects a policy and a logo to hosts inside the network.
func TestRedirectsInside(t *testing.T) {
	t.Parallel()
	web := newPolicyWeb(t)
	for _, target := range []string{"https://inside.example.com/", "https://127.0.0.1/", "https://[::1]/", "https://169.254.169.254/latest/", "http://www.example.com/", "file:///etc/passwd"} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			away := served{status: http.StatusFound, location: target}
			dialer := web.dialer(t, map[string]served{"mta-sts.example.com/.well-known/mta-sts.txt": away, "www.example.com/l.svg": away, "www.example.com/a.pem": away})
			dialer.Allow = nil
			var dialled connections
			connect := dialer.Connect
			dialer.Connect = func(ctx context.Context, network, address string) (net.Conn, error) {
				_, _ = dialled.connect(ctx, network, address) // counted here, connected below
				return connect(ctx, network, address)
			}
			zone := dnstest.New(bothRecords + "mta-sts.example.com A 9.9.9.9\nwww.example.com A 9.9.9.9\ninside.example.com A 10.0.0.1")
			options := dnscheck.Options{Resolver: zone, Now: noon, Dialer: dialer, WebRoots: web.roots}
			facts := dnscheck.New(options).Examine(t.Context(), dnscheck.Request{Domain: "example.com"}).Facts
			if facts.MTASTS.Fetch != "redirect" {
				t.Errorf("MTA-STS: got %q, want the redirect reported and not followed", facts.MTASTS.Fetch)
			}
			if slices.ContainsFunc(dialled.addresses, func(address string) bool { return address != "9.9.9.9:443" }) || len(dialled.addresses) == 0 {
				t.Errorf("got connections to %v, want those to the public host alone", dialled.addresses)
			}
		})
	}
}
