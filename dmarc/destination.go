package dmarc

import (
	"context"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/txt"
)

// maxDestinationHosts bounds the hosts that are asked for consent for one record.
const maxDestinationHosts = 20

// Consent tells whether a destination may be sent reports.
type Consent uint8

const (
	// ConsentUnknown means that a question needed to tell was inconclusive, or was
	// not asked because the record lists more than twenty hosts.
	ConsentUnknown Consent = iota
	// NotNeeded means that the destination is of the same organizational domain as
	// the record.
	NotNeeded
	// Authorized means that the destination agreed.
	Authorized
	// NotAuthorized means that receivers must ignore the destination.
	NotAuthorized
)

// String returns the consent in words.
func (c Consent) String() string {
	switch c {
	case NotNeeded:
		return "not needed"
	case Authorized:
		return "authorized"
	case NotAuthorized:
		return "not authorized"
	default:
		return "unknown"
	}
}

// Destination is a destination of reports and whether it may be used.
type Destination struct {
	// Tag is rua or ruf.
	Tag string
	// URI is the destination as the record lists it.
	URI URI
	// Consent tells whether it may be used.
	Consent Consent
	// Queried is the name at which consent was looked for, "" where it was not.
	Queried string
	// Replacements holds the destinations that the consenting record puts in the
	// place of URI, if any.
	Replacements []URI
}

// ConsentName returns the name at which a host publishes that it takes reports
// about a domain. It reports false where DNS cannot carry that name, so that
// consent cannot be confirmed.
func ConsentName(domain, host string) (string, bool) {
	name := dns.Name(domain) + "._report._dmarc." + dns.Name(host)
	return name, dns.IsHostname(name)
}

// Destinations tells for each URI of rua and ruf, in the order of the record,
// whether reports about the domain that publishes the record may be sent there
// (RFC 9990 §4, RFC 9991 §5). Each host is asked once, at most twenty are.
func Destinations(ctx context.Context, r dns.Resolver, domain string, record Record) []Destination {
	domain = dns.Name(domain)
	hosts := make(map[string]consent)
	var destinations []Destination
	for _, list := range []struct {
		tag  string
		uris []URI
		own  func(Record) []URI
	}{
		{tagRUA, record.RUA, func(r Record) []URI { return r.RUA }},
		{tagRUF, record.RUF, func(r Record) []URI { return r.RUF }},
	} {
		for _, u := range list.uris {
			c, asked := hosts[u.Host]
			if !asked && len(hosts) < maxDestinationHosts {
				c = askConsent(ctx, r, domain, u.Host)
				hosts[u.Host] = c
			}
			d := Destination{Tag: list.tag, URI: u, Consent: c.verdict, Queried: c.queried}
			d.replace(c.records, list.own)
			destinations = append(destinations, d)
		}
	}
	return destinations
}

// consent is what a host says about taking reports about a domain.
type consent struct {
	verdict Consent
	queried string
	records []Record
}

// askConsent asks one host. Only a text that passes the version gate consents,
// several may be there, and others beside them do not matter. A wildcard needs no
// care: it is an ordinary answer.
func askConsent(ctx context.Context, r dns.Resolver, domain, host string) consent {
	switch Align(ctx, r, domain, host, Relaxed) {
	case Aligned:
		return consent{verdict: NotNeeded}
	case AlignmentUnknown:
		return consent{verdict: ConsentUnknown}
	}
	name, ok := ConsentName(domain, host)
	if !ok {
		return consent{verdict: NotAuthorized}
	}
	found := txt.Find(ctx, r, name, Parse)
	c := consent{verdict: NotAuthorized, queried: name, records: found.Records}
	switch {
	case found.Answer.Outcome == dns.Inconclusive:
		c.verdict = ConsentUnknown
	case len(c.records) > 0:
		c.verdict = Authorized
	}
	return c
}

// replace takes over the destinations that consenting records list themselves.
// They stand in for the URI, but must be at the same host: where all lead
// elsewhere, reports go to neither.
func (d *Destination) replace(consenting []Record, own func(Record) []URI) {
	listed := false
	for _, record := range consenting {
		for _, u := range own(record) {
			listed = true
			if u.Host == d.URI.Host && len(d.Replacements) < maxKept {
				d.Replacements = append(d.Replacements, u)
			}
		}
	}
	if listed && len(d.Replacements) == 0 {
		d.Consent = NotAuthorized
	}
}
