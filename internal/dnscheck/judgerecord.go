package dnscheck

import (
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
)

// firstRecord returns the DMARC record that a domain without any should publish.
// One that is not used for mail can ask for everything at once.
func (j *judgement) firstRecord() string {
	record := dmarc.Record{P: dmarc.None}
	if j.unused() {
		record.P = dmarc.Reject
	}
	j.addAddress(&record)
	return txtRecord(dmarc.QueryName(j.facts.Domain), record.String())
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
	j.addAddress(&record)
	return txtRecord(dmarc.QueryName(j.facts.Domain), record.String())
}

// merged returns one record in the place of several: the first one, with the
// strictest policy and the destinations of all.
func (j *judgement) merged(texts []string) string {
	var all dmarc.Record
	for i, text := range texts {
		record, _ := dmarc.Parse(text)
		if i == 0 {
			all = record
		}
		all.P = max(all.P, record.P)
		for _, uri := range record.RUA {
			if !slices.ContainsFunc(all.RUA, func(u dmarc.URI) bool { return u.Text == uri.Text }) {
				all.RUA = append(all.RUA, uri)
			}
		}
	}
	j.addAddress(&all)
	return txtRecord(dmarc.QueryName(j.facts.Domain), all.String())
}

// addAddress gives a record the destination that is wanted, or where it has none
// one that is easy to set up.
func (j *judgement) addAddress(r *dmarc.Record) {
	wanted := j.request.ReportAddress
	if wanted == "" {
		if len(r.RUA) > 0 {
			return
		}
		wanted = "dmarc-reports@" + j.facts.Domain
	}
	if !slices.ContainsFunc(r.RUA, func(u dmarc.URI) bool { return strings.EqualFold(u.Address, wanted) }) {
		r.RUA = append(r.RUA, dmarc.URI{Text: "mailto:" + wanted, Scheme: "mailto", Address: wanted})
	}
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
