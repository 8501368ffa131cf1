package dnscheck

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/facts"
)

// stateOK is the state of a valid record.
const stateOK = "ok"

// maxRecord is the length from which a DMARC record may not fit into the usual 1,232 bytes
// of a DNS message.
const maxRecord = 1000

// weaker reports whether policy is set and less strict than other.
func weaker(policy, other string) bool {
	return policy != "" && policyNamed(policy) < policyNamed(other)
}

// dmarc evaluates the policy that applies. It omits findings that follow from a more severe
// one.
func (e *evaluation) dmarc() {
	f := e.facts.DMARC
	if f.Status == dmarc.StatusInconclusive.String() {
		e.add("dmarc.inconclusive", words{"reason": f.Reason})
		return
	}
	e.apexRecord(f)
	switch {
	case f.Status == dmarc.StatusMultiple.String():
		e.addRecord("dmarc.multiple_records", words{"count": strconv.Itoa(len(f.OwnRecords))}, e.own(e.merged(f.OwnRecords)))
		return
	case e.ownNameBroken(f):
		return
	case f.Record == "", e.ofSuffix(f) && f.Policy == "":
		then := "after a few weeks of reports, raise the policy"
		switch {
		case e.facts.Missing:
			then = "check the spelling of the name first"
		case e.request.Parked:
			then = "the domain sends no mail, so the policy can be strict from the start"
		}
		e.addRecord("dmarc.missing", words{"then": then}, e.own(e.firstRecord(e.misplaced(f))))
		return
	case e.ofSuffix(f):
		// Other problems of that record are not for this owner to fix.
		w := words{"record_domain": f.RecordDomain, "policy": f.Policy}
		e.addRecord("dmarc.policy_of_suffix", w, e.own(e.firstRecord(dmarc.Record{})))
		e.disagreement(f)
		return
	}
	e.usability(f)
	if f.State == stateOK {
		e.inheritance(f)
		e.strength(f)
		e.subdomains(f)
	}
	if f.Policy != "" {
		e.destinations(f)
	}
	e.disagreement(f)
	e.tags(f)
}

// apexRecord reports a record at the wrong name. If there is also one at the right name,
// that is the one to keep: two records would disable both.
func (e *evaluation) apexRecord(f facts.DMARC) {
	for _, text := range f.ApexRecords {
		record := e.own(e.firstRecord(e.misplaced(f)))
		if len(f.OwnRecords) > 0 {
			record = txtRecord(dmarc.QueryName(e.facts.Domain), cut(f.OwnRecords[0], maxText))
		}
		e.addRecord("dmarc.record_at_apex", words{"text": text}, record)
	}
}

// misplaced returns the first record at the wrong name.
func (e *evaluation) misplaced(f facts.DMARC) dmarc.Record {
	if len(f.ApexRecords) == 0 {
		return dmarc.Record{}
	}
	record, _ := dmarc.Parse(f.ApexRecords[0])
	return record
}

// ownNameBroken reports invalid content at the domain's own name. It returns true if that
// leaves the domain without a record.
func (e *evaluation) ownNameBroken(f facts.DMARC) bool {
	for _, miss := range f.Misses {
		w := words{"text": miss.Text, "flaw": missFlaws[miss.Kind], "record_domain": f.RecordDomain}
		near := missFlaws[miss.Kind] != ""
		switch {
		case len(f.OwnRecords) > 0:
			e.add("dmarc.stray_text", w)
		case near && f.Record == "":
			e.addRecord("dmarc.near_miss", w, e.own(e.firstRecord(meantRecord(miss.Text))))
			return true
		case near:
			e.addRecord("dmarc.near_miss_inherited", w, e.own(e.firstRecord(meantRecord(miss.Text))))
		}
	}
	if !f.Dangling {
		return false
	}
	w := words{"target": lastAlias(f.Aliases), "record_domain": f.RecordDomain}
	if f.Record != "" {
		e.add("dmarc.dangling_alias_inherited", w)
		return false
	}
	e.addRecord("dmarc.dangling_alias", w, e.own(e.firstRecord(dmarc.Record{})))
	return true
}

// missFlaws describes why a text is not a record. A text unrelated to DMARC has no flaw.
var missFlaws = map[string]string{
	string(dmarc.Unrelated):        "",
	string(dmarc.VersionCase):      "v=DMARC1 must be in upper case",
	string(dmarc.OtherVersion):     "its version is not DMARC1",
	string(dmarc.LeadingSpace):     "it starts with a space",
	string(dmarc.Quoted):           "it contains quotation marks",
	string(dmarc.EscapedSeparator): "its semicolons are escaped with backslashes",
	string(dmarc.MissingSeparator): "no semicolon follows the version",
	string(dmarc.VersionNotFirst):  "it does not start with v=DMARC1",
	string(dmarc.SPFRecord):        "it is an SPF record, which belongs at the domain itself",
}

// usability reports a record that receivers cannot use.
func (e *evaluation) usability(f facts.DMARC) {
	id := map[string]string{
		dmarc.NoProcessing.String(): "dmarc.policy_off",
		dmarc.ActsAsNone.String():   "dmarc.policy_lost",
	}[f.State]
	if id == "" {
		return
	}
	for _, p := range f.Problems {
		flaw := policyFlaw(p)
		if flaw == "" {
			continue
		}
		// One finding covers all of them.
		e.addRecord(id, words{"at": f.RecordDomain, "flaw": flaw}, e.usable(f))
		return
	}
}

// policyFlaw describes how a problem disables the policy, or returns "".
func policyFlaw(p facts.Problem) string {
	if !slices.Contains([]string{"p", "sp", "np"}, p.Part) {
		return ""
	}
	switch p.Kind {
	case string(dmarc.MissingTag):
		return "it has no policy (p)"
	case string(dmarc.InvalidValue):
		return p.Part + "=" + quotable(p.Text) + " is not one of none, quarantine and reject"
	}
	return ""
}

// ofSuffix reports whether the applicable record belongs to a public suffix.
func (e *evaluation) ofSuffix(f facts.DMARC) bool {
	return f.RecordDomain != e.facts.Domain && (f.RecordIsSuffix || f.PSD == dmarc.PSDYes.String())
}

// inheritance reports whose record applies if it is not the domain's own.
func (e *evaluation) inheritance(f facts.DMARC) {
	w := words{
		"record_domain": f.RecordDomain, "policy": f.Policy, "suffix": f.OrganizationalDomain,
		"organization": f.Legacy.OrganizationalDomain,
	}
	own := f.RecordDomain == e.facts.Domain
	switch {
	case own && f.OrganizationIsSuffix && f.Legacy.OrganizationalDomain != e.facts.Domain:
		// psd=n at this name would separate it from the rest of its organization.
		e.add("dmarc.captured_organization", w)
	case own && f.OrganizationIsSuffix:
		e.addRecord("dmarc.captured", w, e.usable(f))
	case !own:
		e.add("dmarc.inherited", w)
	}
}

// strength evaluates how strict the policy is.
func (e *evaluation) strength(f facts.DMARC) {
	if e.request.Parked {
		return // covered by the findings for parked domains
	}
	w := words{"at": f.RecordDomain, "source": f.Source, "policy": f.Policy, "applied": f.Applied, "percent": f.Percent}
	percent, err := strconv.Atoi(f.Percent)
	sampled := err == nil && percent >= 0 && percent < 100 && f.Policy != "none"
	if sampled {
		e.addRecord("dmarc.percentage", w, e.usable(f))
	}
	switch {
	case f.Policy != f.Applied:
		e.addRecord("dmarc.testing", w, e.usable(f))
	case f.Applied == "none":
		e.addRecord("dmarc.policy_none", w, e.usable(f))
	case f.Applied == "quarantine":
		e.addRecord("dmarc.policy_quarantine", w, e.usable(f))
	case !sampled:
		e.add("dmarc.reject", w)
	}
}

// subdomains reports weaker protection of subdomains.
func (e *evaluation) subdomains(f facts.DMARC) {
	if f.RecordDomain != e.facts.Domain {
		return
	}
	dnssec := e.facts.DNSSEC
	below := cmp.Or(f.SP, f.P)
	w := words{"policy": f.P, "sp": f.SP, "np": f.NP, "other": below, "zone": dnssec.Zone, "host": denialHost(dnssec.Nameservers)}
	if weaker(f.SP, f.P) {
		e.addRecord("dmarc.subdomains_weaker", w, e.usable(f))
	}
	if weaker(f.NP, f.P) && weaker(f.NP, below) {
		e.addRecord("dmarc.missing_names_weaker", w, e.usable(f))
	}
	if !weaker(below, f.NP) {
		return // np makes no difference
	}
	signed := dnssec.Status == zoneSigned || dnssec.Status == zoneUnvalidated
	host := w["host"]
	switch {
	case dnssec.NamesNeverMissing, host != "" && signed:
		if host != "" {
			w["host"] = " (hosted at " + host + ")"
		}
		e.add("dmarc.np_without_effect", w)
	case host != "":
		e.add("dmarc.np_at_risk", w)
	}
}

// disagreement reports where receivers of RFC 9989 and RFC 7489 differ.
func (e *evaluation) disagreement(f facts.DMARC) {
	old := f.Legacy
	if old.Status == inconclusive || f.RecordIsSuffix {
		return
	}
	if f.Policy != old.Policy || f.Policy != "" && f.RecordDomain != old.RecordDomain {
		record := e.own(e.ownRecord(f))
		if e.ofSuffix(f) {
			record = e.own(e.firstRecord(dmarc.Record{})) // the suffix must not receive the reports
		}
		w := words{"new": whose(f.Policy, f.RecordDomain), "old": whose(old.Policy, old.RecordDomain)}
		e.addRecord("dmarc.receivers_disagree", w, record)
		return
	}
	if f.OrganizationalDomain != "" && f.OrganizationalDomain != old.OrganizationalDomain && !f.OrganizationIsSuffix {
		e.add("dmarc.organization_differs", words{"new": f.OrganizationalDomain, "old": old.OrganizationalDomain})
	}
}

// whose describes a policy and its origin.
func whose(policy, domain string) string {
	if policy == "" {
		return "no policy applies"
	}
	return "the policy is " + policy + " (from " + domain + ")"
}
