package dnscheck

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns"
)

// The states of a zone.
const (
	zoneSigned       = "signed"
	zoneUnvalidated  = "unvalidated"
	zoneUndelegated  = "undelegated"
	zoneBroken       = "broken"
	zoneUnsigned     = "unsigned"
	zoneInconclusive = "inconclusive"
)

// nobodysLabel is a label that nobody has a reason to use. A zone that says that
// it exists says so of every name.
const nobodysLabel = "dmarcd-nobody-made-this-name"

// compactDenial holds the domains of name servers that answer for signed zones
// that every name exists (RFC 9824), with who runs them.
var compactDenial = []struct{ domain, host string }{
	{"cloudflare.com", "Cloudflare"},
	{"nsone.net", "NS1"},
	{"azure-dns.com", "Azure"},
	{"azure-dns.net", "Azure"},
	{"azure-dns.org", "Azure"},
	{"azure-dns.info", "Azure"},
}

// denialHost returns who runs the name servers, if they are known to answer so.
// Those of Route 53 are named awsdns-NN under several top-level domains.
func denialHost(nameservers []string) string {
	for _, name := range nameservers {
		if strings.Contains(name, ".awsdns-") {
			return "Route 53"
		}
		for _, known := range compactDenial {
			if name == known.domain || strings.HasSuffix(name, "."+known.domain) {
				return known.host
			}
		}
	}
	return ""
}

// lookDNSSEC finds the zone of the domain and whether it is signed.
func (e *examination) lookDNSSEC(ctx context.Context) {
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
	nobody := e.dns.Resolve(ctx, dns.Question{Name: nobodysLabel + "." + f.Zone, Type: dns.TXT})
	f.NamesNeverMissing = nobody.Outcome == dns.NoData || nobody.Outcome == dns.Data

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
		// The parent answers for itself where a resolver does not hand on DS
		// records; that it validated the zone is proof enough.
		f.Status = zoneSigned
	case keys.Outcome == dns.Data:
		f.Status = zoneUndelegated
	default:
		f.Status = zoneUnsigned
	}
}

// zone returns the answer for the SOA record of the zone that the domain is in, or
// the answer that kept it from being found. The names above the registrable domain
// are the zones of others; where none is found, that domain stands for its zone.
func (e *examination) zone(ctx context.Context) dns.Answer {
	registrable := dmarc.LegacyOrganization(e.Domain)
	for name := e.Domain; ; name = dns.Parent(name) {
		a := e.dns.Resolve(ctx, dns.Question{Name: name, Type: dns.SOA})
		if a.Outcome == dns.Inconclusive || a.Outcome == dns.Data && len(a.Aliases) == 0 || name == registrable {
			return a
		}
	}
}

// delegation takes down the numbers in the DS records (RFC 4034 §5.1).
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
