package dane

import (
	"context"
	"slices"

	"github.com/dmarcd/dmarcd/dns"
)

// maxRecords bounds the records that are kept of one host.
const maxRecords = 100

// Host is what was found out about one MX host.
type Host struct {
	// Name is the host as the MX record names it.
	Name string
	// Preference is that of the MX record.
	Preference uint16
	// BaseName is the name below which Records were found: Name, or where its
	// aliases are validated the last of them (RFC 7672 §2.2.2). It is "" where no
	// records were found. A server is asked for it in TLS (RFC 7672 §8.1).
	BaseName string
	// Status tells how things stand.
	Status Status
	// Address tells whether the addresses of the host are validated. Where only
	// the first alias is, they count as validated, since that is what decides.
	Address Security
	// Records holds the well-formed TLSA records, usable or not, at most 100.
	Records []Record
	// Problems holds what is wrong.
	Problems []Problem
	// Reason says in words why Status is StatusInconclusive; "" otherwise.
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

// note keeps a problem of the host.
func (h *Host) note(kind Kind, text string) {
	h.Problems = append(h.Problems, Problem{Kind: kind, Host: h.Name, Text: text})
}

// lookupHost looks at one host, to which MX records of the given security lead.
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
		// RFC 7672 §2.2.2: where the chain of aliases leaves the signed part of
		// DNS, the name that it starts from still counts if its alias is signed.
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
	h.judge(SecurityOf(tlsa), mx)
	return h
}

// resolveAddress asks for the IPv4 addresses of a host, and where there are none
// for the IPv6 addresses.
func resolveAddress(ctx context.Context, r dns.Resolver, host string) dns.Answer {
	a := r.Resolve(ctx, dns.Question{Name: host, Type: dns.A})
	if a.Outcome == dns.NoData {
		a = r.Resolve(ctx, dns.Question{Name: host, Type: dns.AAAA})
	}
	return a
}

// resolveRecords asks for the TLSA records, and reports whether there are any.
// Where not, it has set the status.
//
// RFC 7672 §2.2.2 tries the end of a validated chain of aliases before its start.
// Senders ask nothing below a host that is not validated; we ask at its own name in
// order to tell of records that are published in vain, and a failure of that
// question means nothing.
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

// readRecords keeps the records of an answer and tells what is wrong with each.
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

// judge sets the status of a host with TLSA records.
func (h *Host) judge(tlsa, mx Security) {
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
