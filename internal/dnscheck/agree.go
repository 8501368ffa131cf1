package dnscheck

import (
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/facts"
)

// tightening are the findings whose fix is a stricter policy. The fix of all others leaves
// the policy as it is.
var tightening = []string{
	"dmarc.policy_none", "dmarc.policy_quarantine", "dmarc.testing", "dmarc.percentage",
	"dmarc.subdomains_weaker", "dmarc.missing_names_weaker",
}

// agree lets all findings propose the same DMARC record for the domain: the repaired one,
// or that with the next stricter policy. The setup guide and the advice start from the
// repaired one too; see Repaired.
func (e *evaluation) agree() {
	record, ok := dmarc.Parse(e.repairedRecord())
	if !ok {
		return
	}
	base := proposed(record, "", nil) // its parts may not fit together
	if record, _ = dmarc.Parse(base); e.request.Parked {
		base = record.Locked()
		record, _ = dmarc.Parse(base)
	}
	next := record
	if f := e.facts.DMARC; f.RecordDomain != e.facts.Domain && f.Percent != "" {
		next, _ = dmarc.Parse(record.Edit(dmarc.Tag{Name: "pct", Value: f.Percent})) // it samples there
	}
	name := dmarc.QueryName(e.facts.Domain)
	for i, f := range e.findings {
		switch {
		case !strings.HasPrefix(f.Record.Name, "_dmarc."):
		case slices.Contains(tightening, f.ID):
			e.findings[i].Record = txtRecord(name, next.Tightened())
		case f.Record.Name == name, f.ID == "parked.policy":
			e.findings[i].Record = txtRecord(name, base)
		}
	}
}

// repairedRecord returns the record that the domain should have with the policy that applies
// now, "" if that is not known.
func (e *evaluation) repairedRecord() string {
	f := e.facts.DMARC
	switch {
	case f.Status == dmarc.StatusInconclusive.String():
		return ""
	case f.Status == dmarc.StatusMultiple.String():
		return e.merged(f.OwnRecords)
	case f.Record == "" || e.ofSuffix(f) || e.tried(f):
		return e.firstRecord(e.meant(f))
	case f.RecordDomain != e.facts.Domain:
		return e.ownRecord(f)
	}
	record, _ := dmarc.Parse(f.Record)
	if f.OrganizationIsSuffix && f.Legacy.OrganizationalDomain == e.facts.Domain {
		record, _ = dmarc.Parse(record.Edit(dmarc.Tag{Name: "psd", Value: dmarc.PSDNo.String()}))
	}
	return proposed(record, e.wanted(record, f.RecordDomain), nil)
}

// tried reports whether the domain has a text that is meant as a record but is not valid.
func (e *evaluation) tried(f facts.DMARC) bool {
	return len(f.OwnRecords) == 0 && slices.ContainsFunc(f.Misses, func(m facts.Problem) bool { return missFlaws[m.Kind] != "" })
}

// meant returns what the owner of a domain without a record tried to publish, if anything.
func (e *evaluation) meant(f facts.DMARC) dmarc.Record {
	for _, miss := range f.Misses {
		if missFlaws[miss.Kind] != "" && len(f.OwnRecords) == 0 {
			return meantRecord(miss.Text)
		}
	}
	return e.misplaced(f)
}

// Repaired returns the DMARC record that the findings of a check propose for a domain without
// a change of its policy; "" if they propose none, or if the record has changed since.
func Repaired(check facts.Check, domain dmarcd.Domain) string {
	if check.Facts == nil || check.Facts.DMARC.Record != domain.Record || check.Facts.DMARC.RecordDomain != domain.RecordDomain {
		return ""
	}
	for _, f := range check.Findings {
		if f.Record.Name == dmarc.QueryName(domain.Name) && !slices.Contains(tightening, f.ID) {
			return f.Record.Data
		}
	}
	if domain.Parked {
		record, _ := dmarc.Parse(baseRecord(domain, "", "", nil))
		return record.Locked()
	}
	return ""
}

// ProposedHere returns the record of baseRecord for an installation without a report domain.
// Where it would have no reports sent anywhere, they go to the domain itself, unless that is
// known not to accept mail.
func ProposedHere(check facts.Check, domain dmarcd.Domain) string {
	text := baseRecord(domain, Repaired(check, domain), "", nil)
	record, _ := dmarc.Parse(text)
	e := &evaluation{}
	switch {
	case check.Facts != nil && domain.Record != "":
		e.facts = *check.Facts
	case check.Facts != nil || domain.Record != "" || domain.Parked:
		return text
	}
	return proposed(record, e.wanted(record, domain.Name), nil)
}
