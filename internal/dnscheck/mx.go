package dnscheck

import (
	"context"
	"net/netip"
	"slices"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/recovered"
)

// The status of the MX records of a domain, and of one of its hosts.
const (
	mxOK           = "ok"
	mxNone         = "none"
	mxNull         = "null"
	mxImplicit     = "implicit"
	mxInconclusive = "inconclusive"

	hostNoAddress  = "no-address"
	hostNoSuchName = "no-such-name"
	hostAddress    = "address"
	hostRoot       = "root"
)

const (
	// maxHosts limits the MX hosts that are checked.
	maxHosts = 20
	// maxHostAddresses limits the stored addresses of a host per family. One answer can
	// have thousands, and each check is compared with the previous one.
	maxHostAddresses = 20
)

// checkMX looks up the MX hosts of the domain.
func (e *examination) checkMX(ctx context.Context) {
	f := &e.facts.MX
	mx := e.dns.Resolve(ctx, dns.Question{Name: e.Domain, Type: dns.MX})
	switch mx.Outcome {
	case dns.Inconclusive:
		f.Status, f.Reason = mxInconclusive, mx.Reason
		return
	case dns.NoSuchName:
		f.Status = mxNone
		e.facts.Missing = len(mx.Aliases) == 0
		return
	case dns.NoData:
		e.checkImplicitMX(ctx)
		return
	}
	if len(mx.Records) == 1 && mx.Records[0].Host == "" {
		f.Status = mxNull
		return
	}
	f.Status = mxOK
	records := mx.Records[:min(len(mx.Records), maxHosts)] // in order: see budget
	f.Hosts = make([]facts.MXHost, len(records))
	var all recovered.Group
	for i, r := range records {
		all.Go(func() { f.Hosts[i] = e.mxHost(ctx, r) })
	}
	all.Wait()
}

// checkImplicitMX checks whether mail goes to the domain itself because it has no MX
// record (RFC 5321 §5.1).
func (e *examination) checkImplicitMX(ctx context.Context) {
	f := &e.facts.MX
	host := e.mxHost(ctx, dns.Record{Host: e.Domain})
	switch host.Status {
	case mxOK:
		f.Status, f.Hosts = mxImplicit, []facts.MXHost{host}
	case mxInconclusive:
		f.Status, f.Reason = mxInconclusive, "the addresses of "+e.Domain+" could not be looked up"
	default:
		f.Status = mxNone
	}
}

func (e *examination) mxHost(ctx context.Context, r dns.Record) facts.MXHost {
	host := facts.MXHost{Name: r.Host, Preference: int(r.Preference)}
	if r.Host == "" {
		host.Status = hostRoot
		return host
	}
	if _, err := netip.ParseAddr(r.Host); err == nil {
		host.Status = hostAddress
		return host
	}
	host.Status = hostNoAddress
	for _, t := range []dns.Type{dns.A, dns.AAAA} {
		a := e.dns.Resolve(ctx, dns.Question{Name: r.Host, Type: t})
		host.Aliases = a.Aliases
		for _, record := range a.Records[:min(len(a.Records), maxHostAddresses)] { // in order: see budget
			host.Addresses = append(host.Addresses, record.Addr.String())
		}
		switch a.Outcome {
		case dns.Inconclusive:
			host.Status = mxInconclusive
		case dns.NoSuchName:
			host.Status = hostNoSuchName
		}
	}
	if len(host.Addresses) > 0 {
		host.Status = mxOK
		slices.Sort(host.Addresses)
	}
	return host
}
