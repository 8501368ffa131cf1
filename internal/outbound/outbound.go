// Package outbound connects to hosts that outsiders choose: mailbox servers, mail servers
// of MX records, MTA-STS policy hosts, hosts of BIMI logos and certificates, and endpoints of
// webhooks. It is the only dialer for them.
//
// It connects only to public unicast addresses and to networks that the operator allows.
// It checks the address that is actually dialled, after name resolution, so DNS rebinding,
// redirects and unusual address formats cannot bypass it. It resolves names with a
// dns.Resolver, never with the system.
//
// Hosts that the operator configures use Trusted instead.
package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dmarcd/dmarcd/dns"
)

// ErrNotAllowed means that every address of a host is private, reserved or translated. The
// text is the same for all of them and reveals nothing about the local network.
var ErrNotAllowed = errors.New("its address is private or reserved; the operator can allow the network with DMARCD_OUTBOUND_ALLOW")

// ErrLookup means that a host name has no address, or that the lookup failed.
var ErrLookup = errors.New("name lookup failed")

const (
	// dialTimeout bounds the attempt to connect to one address.
	dialTimeout = 5 * time.Second
	// maxAddresses is the number of addresses per family to try.
	maxAddresses = 4
)

// Dialer connects to hosts that outsiders choose. It is safe for concurrent use.
type Dialer struct {
	// Resolver resolves host names.
	Resolver dns.Resolver
	// Allow lists allowed networks that are not public.
	Allow []netip.Prefix
	// AllowedOnly restricts connections to the networks in Allow.
	AllowedOnly bool
	// Connect connects to an allowed address; nil means a net.Dialer that checks the
	// address once more. Tests redirect connections with it.
	Connect func(ctx context.Context, network, address string) (net.Conn, error)
}

// With returns a copy of the dialer that uses another resolver.
func (d *Dialer) With(r dns.Resolver) *Dialer {
	other := *d
	other.Resolver = r
	return &other
}

// DialContext connects over TCP to the first allowed address of a host that answers. The
// address is host:port; the host is a name or an IP address. The error wraps ErrNotAllowed if
// no address is allowed, ErrLookup if the lookup failed, and dns.ErrNoAddress too if there is none.
func (d *Dialer) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("parse address %s: %w", address, err)
	}
	addresses, err := d.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	connect := d.Connect
	if connect == nil {
		dialer := net.Dialer{Timeout: dialTimeout, Control: d.control}
		connect = dialer.DialContext
	}
	var failures []error
	for _, a := range addresses {
		if !d.Permits(a) {
			continue
		}
		conn, err := connect(ctx, "tcp", net.JoinHostPort(a.Unmap().String(), port))
		if err == nil {
			return conn, nil
		}
		failures = append(failures, err)
	}
	if failures == nil {
		return nil, fmt.Errorf("connect to %s: %w", host, ErrNotAllowed)
	}
	return nil, errors.Join(failures...)
}

// control checks the address at the socket.
func (d *Dialer) control(_, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil || !d.Permits(target.Addr()) {
		return ErrNotAllowed
	}
	return nil
}

// addresses returns the addresses of a host, or the host itself if it is an address.
func (d *Dialer) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	if literal, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{literal}, nil
	}
	var found []netip.Addr
	var reason string
	for _, t := range []dns.Type{dns.A, dns.AAAA} {
		answer := d.Resolver.Resolve(ctx, dns.Question{Name: dns.Name(host), Type: t})
		if answer.Outcome == dns.Inconclusive {
			reason = answer.Reason
		}
		for _, record := range answer.Records[:min(len(answer.Records), maxAddresses)] {
			found = append(found, record.Addr)
		}
	}
	switch {
	case len(found) > 0:
		return found, nil
	case reason != "":
		return nil, fmt.Errorf("%w: %s: %s", ErrLookup, host, reason)
	default:
		return nil, fmt.Errorf("%w: %s: %w", ErrLookup, host, dns.ErrNoAddress)
	}
}

// Permits reports whether connections to an address are allowed: it is public, or in a
// network of Allow. An IPv4-mapped IPv6 address is checked as IPv4. All other forms that
// embed an IPv4 address (NAT64, 6to4, Teredo, IPv4-compatible, IPv4-translated) are
// checked as IPv6, so allowing the IPv4 network does not allow them. Addresses with a zone
// are never allowed.
func (d *Dialer) Permits(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	a = a.Unmap()
	contains := func(p netip.Prefix) bool { return p.Contains(a) }
	if slices.ContainsFunc(d.Allow, contains) {
		return true
	}
	return !d.AllowedOnly && slices.ContainsFunc(public, contains) && !slices.ContainsFunc(special, contains)
}

// public is the unicast space: IPv4 without class D and E, and the global unicast part of
// IPv6 (RFC 4291 §2.4, IANA: 2000::/3).
var public = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/1"),
	netip.MustParsePrefix("128.0.0.0/2"),
	netip.MustParsePrefix("192.0.0.0/3"),
	netip.MustParsePrefix("2000::/3"),
}

// special lists the special-purpose addresses (RFC 6890, IANA) in the unicast space that
// are not globally reachable or lead to IPv4.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),        // this network
	netip.MustParsePrefix("10.0.0.0/8"),       // private
	netip.MustParsePrefix("100.64.0.0/10"),    // carrier-grade NAT
	netip.MustParsePrefix("127.0.0.0/8"),      // loopback
	netip.MustParsePrefix("168.63.129.16/32"), // the platform service of Azure
	netip.MustParsePrefix("169.254.0.0/16"),   // link-local
	netip.MustParsePrefix("172.16.0.0/12"),    // private
	netip.MustParsePrefix("192.0.0.0/24"),     // protocol assignments
	netip.MustParsePrefix("192.0.2.0/24"),     // documentation
	netip.MustParsePrefix("192.88.99.0/24"),   // 6to4 relays
	netip.MustParsePrefix("192.168.0.0/16"),   // private
	netip.MustParsePrefix("198.18.0.0/15"),    // benchmarking
	netip.MustParsePrefix("198.51.100.0/24"),  // documentation
	netip.MustParsePrefix("203.0.113.0/24"),   // documentation
	netip.MustParsePrefix("2001::/23"),        // protocol assignments, Teredo, ORCHID
	netip.MustParsePrefix("2001:db8::/32"),    // documentation
	netip.MustParsePrefix("2002::/16"),        // 6to4
	netip.MustParsePrefix("3fff::/20"),        // documentation
}

// Trusted returns a dialer for hosts that the operator configures, such as an OpenID
// provider: it connects to any address. It resolves names with the given DNS servers, each
// host:port, in turn, or with the system if there are none; the hosts file of the system
// applies in both cases.
func Trusted(servers []string) *net.Dialer {
	if len(servers) == 0 {
		return &net.Dialer{}
	}
	var next atomic.Uint32
	return &net.Dialer{Resolver: &net.Resolver{
		PreferGo: true,
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			server := servers[int(next.Add(1)-1)%len(servers)]
			return (&net.Dialer{}).DialContext(ctx, network, server)
		},
	}}
}

const (
	headerTimeout = 10 * time.Second
	// maxHeader bounds the response header in bytes. The caller bounds the body.
	maxHeader = 16 << 10
)

// Client returns an HTTPS-only client that uses the dialer. It uses no proxy and no
// keep-alive, and does not decompress. The caller decides about redirects; each is dialled
// and checked again. roots are the trusted roots; nil means those of the system.
func (d *Dialer) Client(roots *x509.CertPool) *http.Client {
	transport := d.transport(roots)
	transport.ResponseHeaderTimeout = headerTimeout
	return &http.Client{Transport: &httpsOnly{transport}}
}

// EndpointClient returns an HTTP client for endpoints that outsiders name. It uses HTTPS for
// every address that the dialer allows, and HTTP only for networks that the operator allows. It
// does not follow redirects. Otherwise it is like Client, but the caller sets all timeouts.
func (d *Dialer) EndpointClient(roots *x509.CertPool) *http.Client {
	allowed := *d
	allowed.AllowedOnly = true
	return &http.Client{
		Transport:     &byScheme{https: d.transport(roots), http: allowed.transport(roots)},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (d *Dialer) transport(roots *x509.CertPool) *http.Transport {
	return &http.Transport{
		DialContext:            d.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		TLSHandshakeTimeout:    dialTimeout,
		MaxResponseHeaderBytes: maxHeader,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
	}
}

// byScheme sends requests without TLS another way.
type byScheme struct{ https, http http.RoundTripper }

// RoundTrip sends a request.
func (b *byScheme) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme == "https" {
		return b.https.RoundTrip(request)
	}
	return b.http.RoundTrip(request)
}

// httpsOnly rejects requests without TLS.
type httpsOnly struct{ next http.RoundTripper }

// RoundTrip sends a request if it is for an https URL.
func (h *httpsOnly) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" {
		return nil, fmt.Errorf("get %s: only https is allowed", request.URL.Redacted())
	}
	return h.next.RoundTrip(request)
}
