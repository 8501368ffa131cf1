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
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/dmarcd/dmarcd/dns"
)

// ErrNotAllowed means that every address of a host is private, reserved or translated. The
// text is the same for all of them and reveals nothing about the local network.
var ErrNotAllowed = errors.New("its address is private or reserved; the operator can allow the network with DMARCD_OUTBOUND_ALLOW")

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
// no address is allowed, and dns.ErrNoAddress if there is none.
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
		return nil, fmt.Errorf("look up %s: %s", host, reason)
	default:
		return nil, fmt.Errorf("look up %s: %w", host, dns.ErrNoAddress)
	}
}
