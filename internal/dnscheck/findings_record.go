package dnscheck

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/facts"
)

// firstRecord returns the DMARC record for a domain without one, based on what its owner
// tried to publish, if anything. Its policy is not weaker than the one that applies now; a
// parked domain starts with reject.
func (e *evaluation) firstRecord(meant dmarc.Record) string {
	record := meant
	if record.P == dmarc.Unstated {
		record.P = max(dmarc.None, policyNamed(e.facts.DMARC.Policy))
		if e.request.Parked {
			record.P = dmarc.Reject
		}
	}
	if dmarc.IsPublicSuffix(e.facts.Domain) {
		// Without psd=y, all domains below would be one organization (RFC 9989 §11.8).
		record.PSD = dmarc.PSDYes
	}
	e.addAddress(&record, e.facts.Domain)
	return record.String()
}

// statedVersion matches the version in a malformed record.
var statedVersion = regexp.MustCompile(`(?i)\bv\s*=\s*dmarc[0-9.]*[\s,;]*`)

// quotes removes quotation marks, which people copy into records.
var quotes = strings.NewReplacer(`"`, "", "'", "", "“", "", "”", "", "„", "", "‘", "", "’", "", `\`, "")

// meantRecord returns what the owner meant with a malformed record.
func meantRecord(text string) dmarc.Record {
	version := statedVersion.FindStringIndex(text)
	if version == nil {
		return dmarc.Record{}
	}
	tags := text[:version[0]] + ";" + text[version[1]:]
	record, _ := dmarc.Parse("v=DMARC1;" + quotes.Replace(tags))
	return record
}

// ownRecord returns a record for the domain itself with the policy that applies to it now.
func (e *evaluation) ownRecord(f facts.DMARC) string {
	record, _ := dmarc.Parse(f.Record)
	if f.RecordDomain != e.facts.Domain {
		record = inherited(record, policyNamed(f.Applied))
	}
	record.P = max(record.P, dmarc.None)
	e.addAddress(&record, e.facts.Domain)
	return record.String()
}

// merged combines several records: the first one, with the strictest policy and all
// destinations.
func (e *evaluation) merged(texts []string) string {
	var all dmarc.Record
	below := dmarc.Unstated
	for i, text := range texts {
		record, _ := dmarc.Parse(text)
		if i == 0 {
			all = record
		}
		all.P, all.NP = max(all.P, record.P), max(all.NP, record.NP)
		below = max(below, cmp.Or(record.SP, record.P))
		all.Testing = all.Testing && record.Testing
		all.RUA, all.RUF = together(all.RUA, record.RUA), together(all.RUF, record.RUF)
	}
	all.P = max(all.P, dmarc.None)
	all.SP = below
	if below == all.P {
		all.SP = dmarc.Unstated
	}
	e.addAddress(&all, e.facts.Domain)
	return all.String()
}

// together returns the union of two lists of destinations.
func together(some, more []dmarc.URI) []dmarc.URI {
	for _, uri := range more {
		if !slices.ContainsFunc(some, func(u dmarc.URI) bool { return u.Text == uri.Text }) {
			some = append(some[:len(some):len(some)], uri)
		}
	}
	return some
}

// usable returns the record that applies as receivers can use it, with reports sent where
// they are wanted. The setup guide and the advice start from the same record.
func (e *evaluation) usable(f facts.DMARC) dmarcd.DNSRecord {
	record, _ := dmarc.Parse(f.Record)
	return txtRecord(dmarc.QueryName(f.RecordDomain), proposed(record, e.wanted(record, f.RecordDomain), nil))
}

// own returns a record of the domain itself.
func (e *evaluation) own(text string) dmarcd.DNSRecord {
	return txtRecord(dmarc.QueryName(e.facts.Domain), text)
}

// wanted returns the address that a record should send reports to: the expected one or, where
// any will do and there is none, one at the domain itself, unless that cannot receive mail.
func (e *evaluation) wanted(r dmarc.Record, at string) string {
	if e.request.ReportAddress != "" || len(r.RUA) > 0 || e.takesNoReports(at) {
		return e.request.ReportAddress
	}
	return "dmarc-reports@" + at
}

// addAddress adds the wanted destination to r.
func (e *evaluation) addAddress(r *dmarc.Record, at string) {
	r.RUA = withAddress(r.RUA, e.wanted(*r, at))
}

// takesNoReports reports whether a domain is known not to accept mail. Only the checked
// domain is known.
func (e *evaluation) takesNoReports(at string) bool {
	mx := e.facts.MX.Status
	return at == e.facts.Domain && (mx == mxNull || mx == mxNone)
}

// policyNamed returns the policy with that name.
func policyNamed(name string) dmarc.Policy {
	for _, p := range []dmarc.Policy{dmarc.None, dmarc.Quarantine, dmarc.Reject} {
		if p.String() == name {
			return p
		}
	}
	return dmarc.Unstated
}
