// Package outbound connects to hosts that outsiders choose: the servers of
// mailboxes, the policy hosts of MTA-STS, the hosts of BIMI logos and
// certificates. It is the only dialer for them.
//
// A connection is made to public unicast addresses and to the networks that the
// operator allows, and to nothing else. The address that is dialled is judged,
// after the name was resolved: a name that resolves differently the second time,
// a redirect, or an unusual way to write an address leads nowhere new. Names are
// resolved through a dns.Resolver, never through the system.
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

// ErrRefused means that every address of a host is private, reserved or
// translated. The text is the same for all of them: it says nothing about the
// network that this process runs in.
var ErrRefused = errors.New("its address is private or reserved; the operator can allow the network with DMARCD_OUTBOUND_ALLOW")

const (
	// dialTimeout bounds the attempt to connect to one address.
	dialTimeout = 5 * time.Second
	// maxAddresses is how many addresses of each family are tried.
	maxAddresses = 4
)

// Dialer connects to hosts that outsiders choose. It is safe for concurrent use.
type Dialer struct {
	// Resolver finds the addresses of hosts.
	Resolver dns.Resolver
	// Allow lists networks that may be reached although they are not public.
	Allow []netip.Prefix
	// Connect connects to an address that may be reached; nil is a net.Dialer that
	// judges the address once more. Tests lead connections elsewhere with it.
	Connect func(ctx context.Context, network, address string) (net.Conn, error)
}

// With returns a copy of the dialer that uses another resolver.
func (d *Dialer) With(r dns.Resolver) *Dialer {
	other := *d
	other.Resolver = r
	return &other
}

// DialContext connects by TCP to the first address of a host that may be reached
// and answers. The address is host:port; the host is a name or an IP address. The
// error wraps ErrRefused if no address may be reached, and dns.ErrNoAddress if there
// is none.
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
		return nil, fmt.Errorf("connect to %s: %w", host, ErrRefused)
	}
	return nil, errors.Join(failures...)
}

// control judges the address where the socket is connected, whatever led there.
func (d *Dialer) control(_, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil || !d.Permits(target.Addr()) {
		return ErrRefused
	}
	return nil
}

// addresses returns the addresses of a host, which may be one itself.
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
