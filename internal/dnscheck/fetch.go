package dnscheck

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
	"syscall"
	"time"

	"github.com/dmarcd/dmarcd/dns"
)

const (
	dialTimeout   = 5 * time.Second
	headerTimeout = 10 * time.Second
	// maxHeader bounds what a server may say before the document itself, whose
	// size the protocol packages bound.
	maxHeader = 16 << 10
)

var (
	errNotPublic = errors.New("the address is not a public one")
	errNoAddress = errors.New("the host has no address")
)

// FetcherOptions are the settings of a Fetcher. The zero value is right for a
// server that fetches what strangers name.
type FetcherOptions struct {
	// AllowPrivate allows addresses that are not public, for laboratories.
	AllowPrivate bool
	// Roots holds the authorities to trust; default those of the system.
	Roots *x509.CertPool
	// Dial connects to an address that may be reached; default a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Fetcher fetches documents over HTTPS from hosts that strangers name. It finds
// the hosts through the resolver that it is given, connects to public addresses
// only, uses no proxy and keeps no connection. It is safe for concurrent use.
type Fetcher struct{ options FetcherOptions }

// NewFetcher returns a fetcher.
func NewFetcher(options FetcherOptions) *Fetcher {
	if options.Dial == nil {
		// The address is looked at again where the connection is made, so that no
		// later change of this code can let a name through that was not resolved
		// here.
		dialer := net.Dialer{Timeout: dialTimeout, Control: func(_, address string, _ syscall.RawConn) error {
			target, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("read address %s: %w", address, err)
			}
			return options.permit(target.Addr())
		}}
		options.Dial = dialer.DialContext
	}
	return &Fetcher{options: options}
}

// client returns an HTTP client that finds hosts through the resolver. Redirects
// are for the protocol to allow or not.
func (f *Fetcher) client(r dns.Resolver) *http.Client {
	return &http.Client{Transport: &httpsOnly{&http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return f.dial(ctx, r, network, address)
		},
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: f.options.Roots},
		TLSHandshakeTimeout:    dialTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		MaxResponseHeaderBytes: maxHeader,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
	}}}
}

// httpsOnly refuses to speak without TLS.
type httpsOnly struct{ next http.RoundTripper }

// RoundTrip sends a request if it is for an https URL.
func (h *httpsOnly) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" {
		return nil, fmt.Errorf("get %s: only https is fetched", request.URL.Redacted())
	}
	return h.next.RoundTrip(request)
}

// dial connects to the first address of the host that may be reached and answers.
func (f *Fetcher) dial(ctx context.Context, r dns.Resolver, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("read address %s: %w", address, err)
	}
	addresses, err := addressesOf(ctx, r, host)
	if err != nil {
		return nil, err
	}
	failures := []error{}
	for _, a := range addresses {
		if err := f.options.permit(a); err != nil {
			failures = append(failures, fmt.Errorf("connect to %s (%s): %w", host, a, err))
			continue
		}
		conn, err := f.options.Dial(ctx, network, net.JoinHostPort(a.String(), port))
		if err == nil {
			return conn, nil
		}
		failures = append(failures, err)
	}
	return nil, errors.Join(failures...)
}

// addressesOf returns the addresses of a host, which may be one itself.
func addressesOf(ctx context.Context, r dns.Resolver, host string) ([]netip.Addr, error) {
	if literal, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{literal}, nil
	}
	var found []netip.Addr
	var reason string
	for _, t := range []dns.Type{dns.A, dns.AAAA} {
		a := r.Resolve(ctx, dns.Question{Name: dns.Name(host), Type: t})
		if a.Outcome == dns.Inconclusive {
			reason = a.Reason
		}
		for _, record := range a.Records {
			found = append(found, record.Addr)
		}
	}
	switch {
	case len(found) > 0:
		return found, nil
	case reason != "":
		return nil, fmt.Errorf("look up %s: %s", host, reason)
	default:
		return nil, fmt.Errorf("look up %s: %w", host, errNoAddress)
	}
}

// permit tells whether an address may be connected to.
func (o FetcherOptions) permit(a netip.Addr) error {
	if o.AllowPrivate || isPublic(a) {
		return nil
	}
	return errNotPublic
}

// isPublic reports whether an address is a unicast one of the public Internet.
func isPublic(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsGlobalUnicast() && !a.IsPrivate() &&
		!slices.ContainsFunc(specialNetworks, func(p netip.Prefix) bool { return p.Contains(a) })
}

// specialNetworks holds what the IANA registries of special-purpose addresses
// (RFC 6890) list as not globally reachable, or as a way into IPv4, beyond what
// package netip knows.
var specialNetworks = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),       // this network
	netip.MustParsePrefix("100.64.0.0/10"),   // shared by carriers
	netip.MustParsePrefix("192.0.0.0/24"),    // protocol assignments
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation
	netip.MustParsePrefix("192.88.99.0/24"),  // 6to4 relays
	netip.MustParsePrefix("198.18.0.0/15"),   // benchmarking
	netip.MustParsePrefix("198.51.100.0/24"), // documentation
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation
	netip.MustParsePrefix("240.0.0.0/4"),     // reserved
	netip.MustParsePrefix("64:ff9b::/96"),    // translation to IPv4
	netip.MustParsePrefix("64:ff9b:1::/48"),  // the same, local
	netip.MustParsePrefix("100::/64"),        // discard
	netip.MustParsePrefix("2001::/23"),       // protocol assignments, Teredo
	netip.MustParsePrefix("2001:db8::/32"),   // documentation
	netip.MustParsePrefix("2002::/16"),       // 6to4
	netip.MustParsePrefix("3fff::/20"),       // documentation
	netip.MustParsePrefix("5f00::/16"),       // segment routing
	netip.MustParsePrefix("fec0::/10"),       // site-local, once
}
