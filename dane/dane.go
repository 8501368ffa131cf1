// Package dane checks whether the mail servers of a domain can be authenticated with DANE
// for SMTP (RFC 7672) and TLSA records (RFC 6698, RFC 7671): which records exist for each
// MX host, whether DNSSEC protects them, whether they are usable, and whether the
// certificates of a server match them.
//
// The package uses a dns.Resolver and trusts its DNSSEC validation. The resolver is
// responsible for deadlines, retries and caching, and the caller provides the function
// that connects to a server. Problems are typed and have no user-facing text.
package dane

import (
	"cmp"
	"context"
	"slices"

	"github.com/dmarcd/dmarcd/dns"
)

// Security is the DNSSEC status that a resolver reports for an answer.
type Security uint8

const (
	// SecurityUnknown means that the query failed. A validating resolver answers SERVFAIL
	// for bogus data, so this may be a broken signature; see the Reason of the answer.
	SecurityUnknown Security = iota
	// Insecure means that the answer was not validated: the zone is unsigned, or the
	// resolver does not validate.
	Insecure
	// Secure means that the resolver validated the answer.
	Secure
)

var securityWords = [...]string{SecurityUnknown: "unknown", Insecure: "insecure", Secure: "secure"}

// String returns the security in one word.
func (s Security) String() string { return securityWords[s] }

// SecurityOf returns the DNSSEC state of an answer, positive or negative.
func SecurityOf(a dns.Answer) Security {
	switch {
	case a.Outcome == dns.Inconclusive:
		return SecurityUnknown
	case a.Authentic:
		return Secure
	default:
		return Insecure
	}
}

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
	// Status is the common status of all hosts, StatusMixed if they differ, StatusInconclusive
	// if one of them is, and StatusNone if there is no host.
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

// Host is the result for one MX host.
type Host struct {
	// Name is the host name in the MX record.
	Name string
	// Preference is from the MX record.
	Preference uint16
	// BaseName is the name at which Records were found: Name, or the last of its aliases
	// if they are validated (RFC 7672 §2.2.2). It is "" if no records were found. It is
	// the server name in TLS (RFC 7672 §8.1).
	BaseName string
	Status   Status
	// Address is the DNSSEC status of the host's addresses. If only the first alias is
	// validated, they count as validated, since that decides.
	Address Security
	// Records are the well-formed TLSA records, usable or not, at most 20.
	Records  []Record
	Problems []Problem
	// Reason is why Status is StatusInconclusive; "" otherwise.
	Reason string
}

// Kind is a type of problem. The values are stable.
type Kind string

// Problems of one TLSA record. Each makes the record unusable.
const (
	// Malformed: the data of the record is too short to be a TLSA record.
	Malformed Kind = "malformed"
	// PKIXUsage: the usage is 0 or 1, which RFC 7672 §3.1.3 excludes for SMTP.
	PKIXUsage Kind = "pkix-usage"
	// UnknownUsage: the usage is above 3.
	UnknownUsage Kind = "unknown-usage"
	// UnknownSelector: the selector is above 1.
	UnknownSelector Kind = "unknown-selector"
	// UnknownMatching: the matching type is above 2.
	UnknownMatching Kind = "unknown-matching"
	// BadData: a digest has the wrong length, or the data is not a certificate or public
	// key.
	BadData Kind = "bad-data"
)

// Problems of the records of a host or a domain.
const (
	// TLSAWithoutDNSSEC: there are TLSA records, but the host's addresses or the records
	// themselves are not validated, so senders ignore them.
	TLSAWithoutDNSSEC Kind = "tlsa-without-dnssec"
	// MXWithoutDNSSEC: there are validated TLSA records, but the MX records are not
	// validated, so an attacker can substitute another host, and senders may skip DANE
	// (RFC 7672 §2.2.1).
	MXWithoutDNSSEC Kind = "mx-without-dnssec"
	// NoUsableRecord: all TLSA records of the host are unusable. Senders require TLS, but
	// cannot authenticate the server (RFC 7672 §2.2).
	NoUsableRecord Kind = "no-usable-record"
	// SingleRecord: there is only one usable record. The next certificate or key fails
	// until its own record has propagated, so publish that first (RFC 7671 §8.1).
	SingleRecord Kind = "single-record"
	// MissingTLSA: other hosts of the domain have TLSA records, this one has none. An
	// attacker can direct senders to it.
	MissingTLSA Kind = "missing-tlsa"
	// NoAddress: the host has no address.
	NoAddress Kind = "no-address"
	// TooManyHosts: only the first twenty hosts were checked.
	TooManyHosts Kind = "too-many-hosts"
)

// Problems of the certificates of a server.
const (
	// NoMatch: no usable record matches a certificate of the server.
	NoMatch Kind = "no-match"
	// ChainNotServed: a record refers to a trust anchor, but the server sends only its own
	// certificate (RFC 7672 §3.1.2).
	ChainNotServed Kind = "chain-not-served"
	// ChainInvalid: a trust anchor matches, but the server's certificate does not chain to
	// it or has expired.
	ChainInvalid Kind = "chain-invalid"
	// NameMismatch: a trust anchor matches, but the server's certificate has none of the
	// required names (RFC 7672 §3.2.2).
	NameMismatch Kind = "name-mismatch"
)

// Problem is a problem of the DANE configuration of a domain.
type Problem struct {
	Kind Kind
	// Host is the affected MX host, "" for the domain or if Match was called without a
	// host.
	Host string
	// Text is the affected part: the record in presentation format, the name of the
	// records, the required names, or the cause of a failure.
	Text string
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

// maxRecords bounds the records per host. A host that lists the keys of all issuers that its CA
// may use has about fifteen.
const maxRecords = 20

// RecordName returns the name of the TLSA records for SMTP to a host.
func RecordName(host string) string { return "_25._tcp." + dns.Name(host) }

// Usable returns the records that SMTP clients can use.
func (h Host) Usable() []Record {
	return slices.DeleteFunc(slices.Clone(h.Records), func(r Record) bool { return !r.Usable() })
}

// has reports whether the host has a problem of the kind.
func (h Host) has(kind Kind) bool {
	return slices.ContainsFunc(h.Problems, func(p Problem) bool { return p.Kind == kind })
}

// note adds a problem of the host.
func (h *Host) note(kind Kind, text string) {
	h.Problems = append(h.Problems, Problem{Kind: kind, Host: h.Name, Text: text})
}

// lookupHost checks one host. mx is the security of the MX records.
func lookupHost(ctx context.Context, r dns.Resolver, e exchange, mx Security) Host {
	h := Host{Name: e.host, Preference: e.preference}
	address := resolveAddress(ctx, r, h.Name)
	h.Address = SecurityOf(address)
	switch address.Outcome {
	case dns.Inconclusive:
		h.Reason = address.Reason
		return h
	case dns.Data:
	default:
		h.Status = StatusNone
		h.note(NoAddress, h.Name)
		return h
	}
	if h.Address == Insecure && len(address.Aliases) > 0 {
		// RFC 7672 §2.2.2: if the chain of aliases leaves the signed part of DNS, the
		// initial name still counts if its alias is signed.
		alias := r.Resolve(ctx, dns.Question{Name: h.Name, Type: dns.CNAME})
		h.Address = SecurityOf(alias)
		if h.Address == SecurityUnknown {
			h.Reason = alias.Reason
			return h
		}
		address.Aliases = nil
	}
	tlsa, ok := h.resolveRecords(ctx, r, address.Aliases)
	if !ok {
		return h
	}
	h.readRecords(tlsa)
	h.evaluate(SecurityOf(tlsa), mx)
	return h
}

// resolveAddress queries the IPv4 addresses of a host, and if there are none, the IPv6
// addresses.
func resolveAddress(ctx context.Context, r dns.Resolver, host string) dns.Answer {
	a := r.Resolve(ctx, dns.Question{Name: host, Type: dns.A})
	if a.Outcome == dns.NoData {
		a = r.Resolve(ctx, dns.Question{Name: host, Type: dns.AAAA})
	}
	return a
}

// resolveRecords queries the TLSA records and reports whether there are any. If not, it
// sets the status.
//
// RFC 7672 §2.2.2 tries the end of a validated chain of aliases before its start. Senders
// skip TLSA queries for a host that is not validated; we query its own name to find
// useless records, and ignore failures of that query.
func (h *Host) resolveRecords(ctx context.Context, r dns.Resolver, aliases []string) (dns.Answer, bool) {
	bases := []string{h.Name}
	if h.Address == Secure && len(aliases) > 0 {
		bases = []string{aliases[len(aliases)-1], h.Name}
	}
	var unprotected dns.Answer
	for _, base := range bases {
		a := r.Resolve(ctx, dns.Question{Name: RecordName(base), Type: dns.TLSA})
		switch {
		case a.Outcome == dns.Inconclusive && h.Address == Secure:
			h.Reason = a.Reason
			return dns.Answer{}, false
		case a.Outcome == dns.Data && a.Authentic:
			h.BaseName = base
			return a, true
		case a.Outcome == dns.Data && h.BaseName == "":
			h.BaseName, unprotected = base, a
		}
	}
	if h.BaseName == "" {
		h.Status = StatusNone
		return dns.Answer{}, false
	}
	return unprotected, true
}

// readRecords parses the records of an answer and adds their problems.
func (h *Host) readRecords(tlsa dns.Answer) {
	for _, record := range tlsa.Records[:min(len(tlsa.Records), maxRecords)] {
		parsed, ok := Parse(record.Raw)
		if !ok {
			h.note(Malformed, RecordName(h.BaseName))
			continue
		}
		h.Records = append(h.Records, parsed)
		if flaw := parsed.Flaw(); flaw != "" {
			h.note(flaw, parsed.String())
		}
	}
}

// evaluate sets the status of a host with TLSA records.
func (h *Host) evaluate(tlsa, mx Security) {
	usable := h.Usable()
	switch {
	case h.Address != Secure || tlsa != Secure:
		h.Status = StatusInsecure
		h.note(TLSAWithoutDNSSEC, RecordName(h.BaseName))
	case mx != Secure:
		h.Status = StatusInsecure
		h.note(MXWithoutDNSSEC, RecordName(h.BaseName))
	case len(usable) == 0:
		h.Status = StatusUnusable
		h.note(NoUsableRecord, RecordName(h.BaseName))
	default:
		h.Status = StatusOK
	}
	if len(usable) == 1 {
		h.note(SingleRecord, usable[0].String())
	}
}
