package dnscheck

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns"
)

// The DNSSEC status of a zone.
const (
	zoneSigned       = "signed"
	zoneUnvalidated  = "unvalidated"
	zoneUndelegated  = "undelegated"
	zoneBroken       = "broken"
	zoneUnsigned     = "unsigned"
	zoneInconclusive = "inconclusive"
)

// unusedLabel is a label that no zone uses. A zone that reports it as existing does so for
// every name.
const unusedLabel = "dmarcd-nonexistent-name"

// compactDenial lists the domains of name servers that report every name in signed zones
// as existing (RFC 9824), with their operators.
var compactDenial = []struct{ domain, host string }{
	{"cloudflare.com", "Cloudflare"},
	{"nsone.net", "NS1"},
	{"azure-dns.com", "Azure"},
	{"azure-dns.net", "Azure"},
	{"azure-dns.org", "Azure"},
	{"azure-dns.info", "Azure"},
}

// denialHost returns the operator of the name servers if they are known to use compact
// denial. Those of Route 53 are named awsdns-NN under several top-level domains.
func denialHost(nameservers []string) string {
	for _, name := range nameservers {
		if strings.Contains(name, ".awsdns-") {
			return "Route 53"
		}
		for _, known := range compactDenial {
			if dmarcd.Covers(known.domain, name) {
				return known.host
			}
		}
	}
	return ""
}

// checkDNSSEC finds the zone of the domain and its DNSSEC status.
func (e *examination) checkDNSSEC(ctx context.Context) {
	f := &e.facts.DNSSEC
	soa := e.zone(ctx)
	f.Zone = soa.Name
	if soa.Outcome == dns.Inconclusive {
		f.Status, f.Reason = zoneInconclusive, soa.Reason
		return
	}
	for _, r := range e.dns.Resolve(ctx, dns.Question{Name: f.Zone, Type: dns.NS}).Records {
		f.Nameservers = append(f.Nameservers, r.Host)
	}
	slices.Sort(f.Nameservers)
	unused := e.dns.Resolve(ctx, dns.Question{Name: unusedLabel + "." + f.Zone, Type: dns.TXT})
	f.NamesNeverMissing = unused.Outcome == dns.NoData || unused.Outcome == dns.Data

	ds := e.dns.Resolve(ctx, dns.Question{Name: f.Zone, Type: dns.DS})
	keys := e.dns.Resolve(ctx, dns.Question{Name: f.Zone, Type: dns.DNSKEY})
	e.delegation(ds)
	switch {
	case ds.Outcome == dns.Inconclusive || keys.Outcome == dns.Inconclusive:
		f.Status, f.Reason = zoneInconclusive, cmp.Or(ds.Reason, keys.Reason)
	case ds.Outcome == dns.Data && keys.Outcome != dns.Data:
		f.Status = zoneBroken
	case ds.Outcome == dns.Data && soa.Authentic:
		f.Status = zoneSigned
	case ds.Outcome == dns.Data:
		f.Status = zoneUnvalidated
	case soa.Authentic:
		// Some resolvers do not return DS records. A validated SOA is sufficient proof.
		f.Status = zoneSigned
	case keys.Outcome == dns.Data:
		f.Status = zoneUndelegated
	default:
		f.Status = zoneUnsigned
	}
}

// zone returns the answer to the SOA query for the zone of the domain, or the inconclusive
// answer that stopped the search. It stops at the registrable domain, since names above it
// belong to others.
func (e *examination) zone(ctx context.Context) dns.Answer {
	registrable := dmarc.LegacyOrganization(e.Domain)
	for name := e.Domain; ; name = dns.Parent(name) {
		a := e.dns.Resolve(ctx, dns.Question{Name: name, Type: dns.SOA})
		if a.Outcome == dns.Inconclusive || a.Outcome == dns.Data && len(a.Aliases) == 0 || name == registrable {
			return a
		}
	}
}

// delegation records the algorithm and digest numbers of the DS records (RFC 4034 §5.1).
func (e *examination) delegation(ds dns.Answer) {
	f := &e.facts.DNSSEC
	for _, r := range ds.Records {
		const header = 4 // key tag, algorithm, digest type
		if len(r.Raw) < header {
			continue
		}
		f.Algorithms = append(f.Algorithms, int(r.Raw[2]))
		f.Digests = append(f.Digests, int(r.Raw[3]))
	}
	slices.Sort(f.Algorithms)
	slices.Sort(f.Digests)
	f.Algorithms, f.Digests = slices.Compact(f.Algorithms), slices.Compact(f.Digests)
}
