package dane

import (
	"cmp"
	"context"
	"slices"

	"github.com/dmarcd/dmarcd/dns"
)

// maxHosts bounds the hosts that are checked per domain.
const maxHosts = 20

// Status is the DANE status of a host or a domain.
type Status uint8

const (
	// StatusInconclusive means that a necessary query failed.
	StatusInconclusive Status = iota
	// StatusOK means that senders can authenticate the server with DANE.
	StatusOK
	// StatusNone means that there are no TLSA records.
	StatusNone
	// StatusInsecure means that there are TLSA records, but DNSSEC does not protect the
	// whole path to them.
	StatusInsecure
	// StatusUnusable means that there are protected TLSA records, but SMTP clients cannot
	// use any of them.
	StatusUnusable
	// StatusMixed means that the hosts of a domain differ. Hosts do not have this status.
	StatusMixed
)

var statusWords = [...]string{
	StatusInconclusive: "inconclusive", StatusOK: "ok", StatusNone: "none",
	StatusInsecure: "insecure", StatusUnusable: "unusable", StatusMixed: "mixed",
}

// String returns the status in one word.
func (s Status) String() string { return statusWords[s] }

// Result is the result for a domain.
type Result struct {
	Domain string
	// Status is that of all hosts if they agree, StatusMixed if not, StatusInconclusive if
	// one of them is, and StatusNone if there is no host.
	Status Status
	// MX is the DNSSEC status of the MX records or their absence.
	MX Security
	// NullMX reports that the domain accepts no mail (RFC 7505).
	NullMX bool
	// Hosts are the hosts by preference and name, at most twenty. A domain with addresses
	// but no MX records is its own host (RFC 5321 §5.1).
	Hosts []Host
	// Problems lists the problems of the domain itself.
	Problems []Problem
	// Reason is why the MX lookup failed; hosts have their own reasons.
	Reason string
}

// AllProblems returns the problems of the domain and then those of its hosts.
func (r Result) AllProblems() []Problem {
	all := slices.Clone(r.Problems)
	for _, h := range r.Hosts {
		all = append(all, h.Problems...)
	}
	return all
}

// Lookup checks DANE for the mail servers of a domain. It makes one query for the MX
// records and at most five per host, sequentially.
func Lookup(ctx context.Context, r dns.Resolver, domain string) Result {
	domain = dns.Name(domain)
	mx := r.Resolve(ctx, dns.Question{Name: domain, Type: dns.MX})
	result := Result{Domain: domain, MX: SecurityOf(mx), Reason: mx.Reason}
	if mx.Outcome == dns.Inconclusive {
		return result
	}
	exchanges := exchanges(mx)
	switch {
	case mx.Outcome == dns.NoData:
		exchanges = []exchange{{host: domain}}
	case len(exchanges) == 1 && exchanges[0].host == "":
		result.NullMX, exchanges = true, nil
	case len(exchanges) > maxHosts:
		result.Problems = append(result.Problems, Problem{Kind: TooManyHosts, Text: exchanges[maxHosts].host})
		exchanges = exchanges[:maxHosts]
	}
	for _, e := range exchanges {
		h := lookupHost(ctx, r, e, result.MX)
		if mx.Outcome == dns.NoData && h.has(NoAddress) {
			break // neither MX records nor addresses: the domain accepts no mail
		}
		result.Hosts = append(result.Hosts, h)
	}
	result.compareHosts()
	return result
}

// exchange is a host and its lowest preference.
type exchange struct {
	preference uint16
	host       string
}

// exchanges returns each host of the MX records once, by preference and name.
func exchanges(mx dns.Answer) []exchange {
	var found []exchange
	for _, record := range mx.Records {
		found = append(found, exchange{record.Preference, record.Host})
	}
	slices.SortFunc(found, func(a, b exchange) int {
		return cmp.Or(cmp.Compare(a.preference, b.preference), cmp.Compare(a.host, b.host))
	})
	seen := make(map[string]bool)
	return slices.DeleteFunc(found, func(e exchange) bool {
		known := seen[e.host]
		seen[e.host] = true
		return known
	})
}

// compareHosts sets the status of the domain and reports hosts without records next to
// hosts with records.
func (r *Result) compareHosts() {
	r.Status = StatusNone
	published := slices.ContainsFunc(r.Hosts, func(h Host) bool { return len(h.Records) > 0 })
	for i := range r.Hosts {
		h := &r.Hosts[i]
		switch {
		case i == 0:
			r.Status = h.Status
		case h.Status == StatusInconclusive || r.Status == StatusInconclusive:
			r.Status = StatusInconclusive
		case h.Status != r.Status:
			r.Status = StatusMixed
		}
		if published && h.Status == StatusNone {
			h.note(MissingTLSA, RecordName(h.Name))
		}
	}
}
