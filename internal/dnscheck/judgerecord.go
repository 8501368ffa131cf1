package dnscheck

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
)

// firstRecord returns the DMARC record that a domain without any should publish,
// given what its owner tried to say, if anything. It asks for no less than the policy
// that applies now; a domain that is not used for mail can ask for everything at once.
func (j *judgement) firstRecord(meant dmarc.Record) string {
	record := meant
	if record.P == dmarc.Unstated {
		record.P = max(dmarc.None, policyNamed(j.facts.DMARC.Policy))
		if j.unused() {
			record.P = dmarc.Reject
		}
	}
	if dmarc.IsPublicSuffix(j.facts.Domain) {
		// Without it, all domains below would be one organization (RFC 9989 §11.8).
		record.PSD = dmarc.PSDYes
	}
	j.addAddress(&record, j.facts.Domain)
	return txtRecord(dmarc.QueryName(j.facts.Domain), record.String())
}

// statedVersion finds the version in a text that is almost a record.
var statedVersion = regexp.MustCompile(`(?i)\bv\s*=\s*dmarc[0-9.]*[\s,;]*`)

// meantRecord returns what the owner tried to say with a text that is almost a record.
func meantRecord(text string) dmarc.Record {
	version := statedVersion.FindStringIndex(text)
	if version == nil {
		return dmarc.Record{}
	}
	tags := text[:version[0]] + ";" + text[version[1]:]
	record, _ := dmarc.Parse("v=DMARC1;" + strings.Map(func(r rune) rune {
		if strings.ContainsRune("\"'“”„‘’\\", r) {
			return -1
		}
		return r
	}, tags))
	return record
}

// repaired returns the record that applies, without its mistakes and with a change.
func (j *judgement) repaired(f dmarcd.DMARCFacts, change func(*dmarc.Record)) string {
	record, _ := dmarc.Parse(f.Record)
	change(&record)
	return txtRecord(dmarc.QueryName(f.RecordDomain), record.String())
}

// ownRecord returns a record for the domain's own name that asks for what applies to
// it now.
func (j *judgement) ownRecord(f dmarcd.DMARCFacts) string {
	record, _ := dmarc.Parse(f.Record)
	if f.RecordDomain != j.facts.Domain {
		// What an ancestor says of its subdomains is of no use here.
		record = dmarc.Record{ADKIM: record.ADKIM, ASPF: record.ASPF, RUA: record.RUA}
		record.P = policyNamed(f.Policy)
	}
	record.P = max(record.P, dmarc.None)
	j.addAddress(&record, j.facts.Domain)
	return txtRecord(dmarc.QueryName(j.facts.Domain), record.String())
}

// merged returns one record in the place of several: the first one, with the
// strictest policy and the destinations of all.
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
	return txtRecord(dmarc.QueryName(j.facts.Domain), all.String())
}

// together returns the destinations of both lists, each once.
func together(some, more []dmarc.URI) []dmarc.URI {
	for _, uri := range more {
		if !slices.ContainsFunc(some, func(u dmarc.URI) bool { return u.Text == uri.Text }) {
			some = append(some[:len(some):len(some)], uri)
		}
	}
	return some
}

// addAddress gives the record of a domain the destination that is wanted, or where it
// has none one that is easy to set up, unless no mail can reach that.
func (j *judgement) addAddress(r *dmarc.Record, at string) {
	wanted := j.request.ReportAddress
	if wanted == "" {
		if len(r.RUA) > 0 || j.takesNoReports(at) {
			return
		}
		wanted = "dmarc-reports@" + at
	}
	if !slices.ContainsFunc(r.RUA, func(u dmarc.URI) bool { return strings.EqualFold(u.Address, wanted) }) {
		r.RUA = append(r.RUA, dmarc.URI{Text: "mailto:" + wanted, Scheme: "mailto", Address: wanted})
	}
}

// takesNoReports reports whether it is known that no mail can reach a domain. Of
// another one than that which was looked at, it is not.
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
