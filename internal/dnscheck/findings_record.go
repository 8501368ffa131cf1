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
func (j *judgement) firstRecord(meant dmarc.Record) string {
	record := meant
	if record.P == dmarc.Unstated {
		record.P = max(dmarc.None, policyNamed(j.facts.DMARC.Policy))
		if j.request.Parked {
			record.P = dmarc.Reject
		}
	}
	if dmarc.IsPublicSuffix(j.facts.Domain) {
		// Without psd=y, all domains below would be one organization (RFC 9989 §11.8).
		record.PSD = dmarc.PSDYes
	}
	j.addAddress(&record, j.facts.Domain)
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
func (j *judgement) ownRecord(f facts.DMARC) string {
	record, _ := dmarc.Parse(f.Record)
	if f.RecordDomain != j.facts.Domain {
		record = inherited(record, policyNamed(f.Applied))
	}
	record.P = max(record.P, dmarc.None)
	j.addAddress(&record, j.facts.Domain)
	return record.String()
}

// merged combines several records: the first one, with the strictest policy and all
// destinations.
func (j *judgement) merged(texts []string) string {
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
	j.addAddress(&all, j.facts.Domain)
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
func (j *judgement) usable(f facts.DMARC) dmarcd.DNSRecord {
	record, _ := dmarc.Parse(f.Record)
	return txtRecord(dmarc.QueryName(f.RecordDomain), proposed(record, j.wanted(record, f.RecordDomain), nil))
}

// own returns a record of the domain itself.
func (j *judgement) own(text string) dmarcd.DNSRecord {
	return txtRecord(dmarc.QueryName(j.facts.Domain), text)
}

// wanted returns the address that a record should send reports to: the expected one or, where
// any will do and there is none, one at the domain itself, unless that cannot receive mail.
func (j *judgement) wanted(r dmarc.Record, at string) string {
	if j.request.ReportAddress != "" || len(r.RUA) > 0 || j.takesNoReports(at) {
		return j.request.ReportAddress
	}
	return "dmarc-reports@" + at
}

// addAddress adds the wanted destination to r.
func (j *judgement) addAddress(r *dmarc.Record, at string) {
	r.RUA = withAddress(r.RUA, j.wanted(*r, at))
}

// takesNoReports reports whether a domain is known not to accept mail. Only the checked
// domain is known.
func (j *judgement) takesNoReports(at string) bool {
	mx := j.facts.MX.Status
	return at == j.facts.Domain && (mx == mxNull || mx == mxNone)
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
