package dnscheck

import (
	"slices"
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
)

// stateOK is the state of a record that says what to do.
const stateOK = "ok"

// maxRecord is how long a DMARC record may be before its answer is in danger of
// not fitting the 1,232 bytes that DNS messages are usually kept to.
const maxRecord = 1000

// weaker reports whether a policy is stated that asks for less than another.
func weaker(policy, other string) bool {
	return policy != "" && policyNamed(policy) < policyNamed(other)
}

// dmarc tells which policy applies. What follows from something graver is not told.
func (j *judgement) dmarc() {
	f := j.facts.DMARC
	if f.Status == dmarc.StatusInconclusive.String() {
		j.say("dmarc.inconclusive", words{"reason": f.Reason})
		return
	}
	j.apexRecord(f)
	switch {
	case f.Status == dmarc.StatusMultiple.String():
		j.sayRecord("dmarc.multiple-records", words{"count": strconv.Itoa(len(f.OwnRecords))}, j.merged(f.OwnRecords))
		return
	case j.ownNameBroken(f):
		return
	case f.Record == "", j.ofSuffix(f) && f.Policy == "":
		then := "after some weeks of reports, raise the policy"
		if j.unused() {
			then = "no mail is sent as this domain, so the policy can be strict from the start"
		}
		j.sayRecord("dmarc.missing", words{"then": then}, j.firstRecord(j.misplaced(f)))
		return
	case j.ofSuffix(f):
		// What else there is to say about that record is for others to mend.
		w := words{"record_domain": f.RecordDomain, "policy": f.Policy}
		j.sayRecord("dmarc.policy-of-suffix", w, j.firstRecord(dmarc.Record{}))
		j.disagreement(f)
		return
	}
	j.usability(f)
	if f.State == stateOK {
		j.inheritance(f)
		j.strength(f)
		j.subdomains(f)
	}
	if f.Policy != "" {
		j.destinations(f)
	}
	j.disagreement(f)
	j.tags(f)
}

// apexRecord tells that a record stands in the wrong place. Where there is one in the
// right place too, that is the one to keep: a second would put both out of force.
func (j *judgement) apexRecord(f dmarcd.DMARCFacts) {
	for _, text := range f.ApexRecords {
		record := j.firstRecord(j.misplaced(f))
		if len(f.OwnRecords) > 0 {
			record = txtRecord(dmarc.QueryName(j.facts.Domain), cut(f.OwnRecords[0], maxNested))
		}
		j.sayRecord("dmarc.record-at-apex", words{"text": text}, record)
	}
}

// misplaced returns the record that stands in the wrong place, the first of several.
func (j *judgement) misplaced(f dmarcd.DMARCFacts) dmarc.Record {
	if len(f.ApexRecords) == 0 {
		return dmarc.Record{}
	}
	record, _ := dmarc.Parse(f.ApexRecords[0])
	return record
}

// ownNameBroken tells what stands at the domain's own name without being a record.
// It reports true where that leaves the domain without any.
func (j *judgement) ownNameBroken(f dmarcd.DMARCFacts) bool {
	for _, miss := range f.Misses {
		w := words{"text": miss.Text, "flaw": missFlaws[miss.Kind], "record_domain": f.RecordDomain}
		near := missFlaws[miss.Kind] != ""
		switch {
		case len(f.OwnRecords) > 0:
			j.say("dmarc.stray-text", w)
		case near && f.Record == "":
			j.sayRecord("dmarc.near-miss", w, j.firstRecord(meantRecord(miss.Text)))
			return true
		case near:
			j.sayRecord("dmarc.near-miss-inherited", w, j.firstRecord(meantRecord(miss.Text)))
		}
	}
	if !f.Dangling {
		return false
	}
	w := words{"target": lastAlias(f.Aliases), "record_domain": f.RecordDomain}
	if f.Record != "" {
		j.say("dmarc.dangling-alias-inherited", w)
		return false
	}
	j.sayRecord("dmarc.dangling-alias", w, j.firstRecord(dmarc.Record{}))
	return true
}

// missFlaws says what is wrong with a text that is no record. A text that has
// nothing to do with DMARC has no flaw.
var missFlaws = map[string]string{
	string(dmarc.Unrelated):        "",
	string(dmarc.VersionCase):      "the version is not written v=DMARC1 with capital letters",
	string(dmarc.OtherVersion):     "its version is not DMARC1",
	string(dmarc.LeadingSpace):     "it begins with a space",
	string(dmarc.Quoted):           "quotation marks are part of the text",
	string(dmarc.EscapedSeparator): "its semicolons are written with backslashes",
	string(dmarc.MissingSeparator): "no semicolon follows the version",
	string(dmarc.VersionNotFirst):  "v=DMARC1 is not at its beginning",
	string(dmarc.SPFRecord):        "it is an SPF record, which belongs at the domain itself",
}

// usability tells that receivers cannot use the record as it stands.
func (j *judgement) usability(f dmarcd.DMARCFacts) {
	id := map[string]string{
		dmarc.NoProcessing.String(): "dmarc.policy-off",
		dmarc.ActsAsNone.String():   "dmarc.policy-lost",
	}[f.State]
	if id == "" {
		return
	}
	for _, p := range f.Problems {
		flaw := policyFlaw(p)
		if flaw == "" {
			continue
		}
		// All of them together are one thing to mend.
		j.sayRecord(id, words{"at": f.RecordDomain, "flaw": flaw}, j.repaired(f, func(r *dmarc.Record) {
			if r.P == dmarc.Unstated {
				r.P = dmarc.None
			}
			j.addAddress(r, f.RecordDomain)
		}))
		return
	}
}

// policyFlaw says how a problem takes the policy away, "" where it does not.
func policyFlaw(p dmarcd.Problem) string {
	if !slices.Contains([]string{"p", "sp", "np"}, p.Part) {
		return ""
	}
	switch p.Kind {
	case string(dmarc.MissingTag):
		return "it has no policy (p)"
	case string(dmarc.InvalidValue):
		return p.Part + "=" + quotable(p.Text) + " is none of none, quarantine and reject"
	}
	return ""
}

// ofSuffix reports whether the record that applies is that of a domain under which
// others register names.
func (j *judgement) ofSuffix(f dmarcd.DMARCFacts) bool {
	return f.RecordDomain != j.facts.Domain && (f.RecordIsSuffix || f.PSD == dmarc.PSDYes.String())
}

// inheritance tells whose record applies where it is not the domain's own.
func (j *judgement) inheritance(f dmarcd.DMARCFacts) {
	w := words{
		"record_domain": f.RecordDomain, "policy": f.Policy, "suffix": f.OrganizationalDomain,
		"organization": f.Legacy.OrganizationalDomain,
	}
	own := f.RecordDomain == j.facts.Domain
	switch {
	case own && f.OrganizationIsSuffix && f.Legacy.OrganizationalDomain != j.facts.Domain:
		// psd=n at this name would cut it off from the rest of its organization.
		j.say("dmarc.captured-organization", w)
	case own && f.OrganizationIsSuffix:
		j.sayRecord("dmarc.captured", w, j.repaired(f, func(r *dmarc.Record) { r.PSD = dmarc.PSDNo }))
	case !own:
		j.say("dmarc.inherited", w)
	}
}

// strength tells how much the policy asks for.
func (j *judgement) strength(f dmarcd.DMARCFacts) {
	if j.saysParked() {
		return // told with the other signs of a parked domain
	}
	w := words{"at": f.RecordDomain, "source": f.Source, "policy": f.Policy, "applied": f.Applied, "percent": f.Percent}
	percent, err := strconv.Atoi(f.Percent)
	sampled := err == nil && percent >= 0 && percent < 100 && f.Policy != "none"
	if sampled {
		j.sayRecord("dmarc.percentage", w, j.repaired(f, func(*dmarc.Record) {}))
	}
	switch {
	case f.Policy != f.Applied:
		j.sayRecord("dmarc.testing", w, j.repaired(f, func(r *dmarc.Record) { r.Testing = false }))
	case f.Applied == "none":
		j.sayRecord("dmarc.policy-none", w, j.repaired(f, func(r *dmarc.Record) { raise(r, f.Source, dmarc.Quarantine) }))
	case f.Applied == "quarantine":
		j.sayRecord("dmarc.policy-quarantine", w, j.repaired(f, func(r *dmarc.Record) { raise(r, f.Source, dmarc.Reject) }))
	case !sampled:
		j.say("dmarc.reject", w)
	}
}

// raise sets the policy that one tag states.
func raise(r *dmarc.Record, tag string, policy dmarc.Policy) {
	switch tag {
	case "sp":
		r.SP = policy
	case "np":
		r.NP = policy
	default:
		r.P = policy
	}
}

// subdomains tells where names below the domain are less protected.
func (j *judgement) subdomains(f dmarcd.DMARCFacts) {
	if f.RecordDomain != j.facts.Domain {
		return
	}
	dnssec := j.facts.DNSSEC
	below := orNone(f.SP, f.P)
	w := words{"policy": f.P, "sp": f.SP, "np": f.NP, "other": below, "zone": dnssec.Zone, "host": denialHost(dnssec.Nameservers)}
	if weaker(f.SP, f.P) {
		j.sayRecord("dmarc.subdomains-weaker", w, j.repaired(f, func(r *dmarc.Record) { r.SP = r.P }))
	}
	if weaker(f.NP, f.P) && weaker(f.NP, below) {
		j.sayRecord("dmarc.missing-names-weaker", w, j.repaired(f, func(r *dmarc.Record) { r.NP = dmarc.Unstated }))
	}
	if !weaker(below, f.NP) {
		return // nothing is lost where np has no effect
	}
	signed := dnssec.Status == zoneSigned || dnssec.Status == zoneUnvalidated
	host := w["host"]
	fix := j.repaired(f, func(r *dmarc.Record) { r.SP = r.NP })
	switch {
	case dnssec.NamesNeverMissing, host != "" && signed:
		if host != "" {
			w["host"] = " (hosted at " + host + ")"
		}
		j.sayRecord("dmarc.np-without-effect", w, fix)
	case host != "":
		j.sayRecord("dmarc.np-at-risk", w, fix)
	}
}

// disagreement tells where receivers of the two generations differ.
func (j *judgement) disagreement(f dmarcd.DMARCFacts) {
	old := f.Legacy
	if old.Status == inconclusive || f.RecordIsSuffix {
		return
	}
	if f.Policy != old.Policy || f.Policy != "" && f.RecordDomain != old.RecordDomain {
		record := j.ownRecord(f)
		if j.ofSuffix(f) {
			record = j.firstRecord(dmarc.Record{}) // reports are not for the suffix
		}
		w := words{"new": whose(f.Policy, f.RecordDomain), "old": whose(old.Policy, old.RecordDomain)}
		j.sayRecord("dmarc.receivers-disagree", w, record)
		return
	}
	if f.OrganizationalDomain != "" && f.OrganizationalDomain != old.OrganizationalDomain && !f.OrganizationIsSuffix {
		j.say("dmarc.organization-differs", words{"new": f.OrganizationalDomain, "old": old.OrganizationalDomain})
	}
}

// whose puts a policy and its origin into words.
func whose(policy, domain string) string {
	if policy == "" {
		return "no policy applies"
	}
	return "the policy is " + policy + " (from " + domain + ")"
}
