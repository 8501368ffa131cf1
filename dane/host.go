package dane

import (
	"context"
	"slices"

	"github.com/dmarcd/dmarcd/dns"
)

// maxRecords bounds the records per host. A host that lists the keys of all issuers that its CA
// may use has about fifteen.
const maxRecords = 20

// Host is the result for one MX host.
type Host struct {
	// Name is the host name in the MX record.
	Name string
	// Preference is that of the MX record.
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

// lookupHost checks one host. security is that of the MX records.
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
