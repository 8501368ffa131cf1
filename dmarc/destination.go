package dmarc

import (
	"context"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/txt"
)

// maxDestinationHosts bounds the hosts that are queried for consent per record.
const maxDestinationHosts = 20

// Consent is whether reports may be sent to a destination.
type Consent uint8

const (
	// ConsentUnknown means that a necessary query was inconclusive, or was not sent
	// because the record lists more than twenty hosts.
	ConsentUnknown Consent = iota
	// NotNeeded means that the destination has the same organizational domain as the
	// record.
	NotNeeded
	// Authorized means that the destination has authorized the reports.
	Authorized
	// NotAuthorized means that receivers must ignore the destination.
	NotAuthorized
)

var consentWords = [...]string{
	ConsentUnknown: "unknown", NotNeeded: "not needed",
	Authorized: "authorized", NotAuthorized: "not authorized",
}

// String returns the consent in words.
func (c Consent) String() string { return consentWords[c] }

// Destination is a destination of reports with its consent.
type Destination struct {
	// Tag is rua or ruf.
	Tag string
	// URI is the destination in the record.
	URI     URI
	Consent Consent
	// Queried is the name that was queried for consent, or "".
	Queried string
	// Replacements are the destinations that the authorizing record specifies instead of
	// URI, if any.
	Replacements []URI
}

// ConsentName returns the name at which a host authorizes reports about a domain. It
// returns false if the name is too long for DNS, so that consent cannot be confirmed.
func ConsentName(domain, host string) (string, bool) {
	name := dns.Name(domain) + "._report._dmarc." + dns.Name(host)
	return name, dns.IsHostname(name)
}

// Destinations returns, for each URI of rua and ruf in order, whether reports about the
// publishing domain may be sent there (RFC 9990 §4, RFC 9991 §5). It queries each host
// once, and at most twenty.
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
			d := Destination{Tag: list.tag, URI: u, Consent: c.consent, Queried: c.queried}
			d.replace(c.records, list.own)
			destinations = append(destinations, d)
		}
	}
	return destinations
}

// consent is the authorization of a host for reports about a domain.
type consent struct {
	consent Consent
	queried string
	records []Record
}

// askConsent queries one host. Any number of texts with the right version authorize; other
// texts are ignored. A wildcard is an ordinary answer.
func askConsent(ctx context.Context, r dns.Resolver, domain, host string) consent {
	switch Align(ctx, r, domain, host, Relaxed) {
	case Aligned:
		return consent{consent: NotNeeded}
	case AlignmentUnknown:
		return consent{consent: ConsentUnknown}
	}
	name, ok := ConsentName(domain, host)
	if !ok {
		return consent{consent: NotAuthorized}
	}
	found := txt.Find(ctx, r, name, Parse)
	c := consent{consent: NotAuthorized, queried: name, records: found.Records}
	switch {
	case found.Answer.Outcome == dns.Inconclusive:
		c.consent = ConsentUnknown
	case len(c.records) > 0:
		c.consent = Authorized
	}
	return c
}

// replace applies the destinations that authorizing records specify. They replace the URI,
// but must be at the same host: if all are elsewhere, no reports are sent.
func (d *Destination) replace(consenting []Record, own func(Record) []URI) {
	listed := false
	for _, record := range consenting {
		for _, u := range own(record) {
			listed = true
			if u.Host == d.URI.Host && len(d.Replacements) < maxListed {
				d.Replacements = append(d.Replacements, u)
			}
		}
	}
	if listed && len(d.Replacements) == 0 {
		d.Consent = NotAuthorized
	}
}
