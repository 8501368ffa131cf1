package facts

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// Name is a fact that is compared between two checks: its path in a check of the API. Changes
// are stored with it, so names must not be changed or reused. {of} stands for Change.Of where a
// domain has several values (the selector, host, term or URI), {member} for a member of a list.
type Name string

// The facts that other packages refer to. All others are named where observe adds them.
const (
	NameGrade        Name = "grade"
	NameFinding      Name = "findings.{of}" // by id: the level
	NameDMARCRecord  Name = "dmarc.record"
	NameDMARCApplied Name = "dmarc.effective_policy"
	NameSPFRecord    Name = "spf.record"
	NameSPFIncluded  Name = "spf.tree.{of}.record" // by term: the record it refers to
	NameDKIMRecord   Name = "dkim.{of}.record"     // by selector
	NameMXHost       Name = "mx.{of}.host"         // by host
	NameMTASTSRecord Name = "mta_sts.record"
	NameTLSRPTRecord Name = "tls_rpt.record"
	NameBIMIRecord   Name = "bimi.record"
)

// mtastsPolicy is the part of the facts about the policy file of MTA-STS: it may be unknown while the
// record is known.
const mtastsPolicy = "mta_sts_policy"

// Path returns the path of a change in a check of the API.
func (c Change) Path() string {
	return strings.NewReplacer("{of}", c.Of, "{member}", c.Before+c.After).Replace(string(c.Fact))
}

// part returns the part of the check that the fact belongs to, such as dmarc or mta_sts.
func (n Name) part() string {
	switch n {
	case "mta_sts.fetch", "mta_sts.mode", "mta_sts.max_age", "mta_sts.mx.{member}":
		return mtastsPolicy
	}
	part, _, _ := strings.Cut(string(n), ".")
	return part
}

// Change is one difference between two checks of a domain, with the names of its stored document.
type Change struct {
	Fact Name `json:"fact"`
	// Of is the key, host, term, destination or finding of the fact; "" if a domain has
	// only one.
	Of string `json:"of,omitzero"`
	// Before is "" if it was added, After if it was removed. For a member of a list, one
	// of them is the member and the other "".
	Before string `json:"before,omitzero"`
	After  string `json:"after,omitzero"`
}

// Changes returns the differences between two full checks of a domain, sorted by fact and
// Of. It ignores differences that do not come from DNS: the order of a list, what either
// check could not determine, the text of a finding. It also ignores differences that
// follow from others: SPF records are compared only if both checks have a term that
// refers to them, because otherwise the referring record has changed as well.
func Changes(before, after Check) []Change {
	was, is := observe(before), observe(after)
	keys := make(map[factKey]bool, len(is.values))
	for key := range was.values {
		keys[key] = true
	}
	for key := range is.values {
		keys[key] = true
	}
	var changes []Change
	for key := range keys {
		old, now := was.values[key], is.values[key]
		follows := key.fact == NameSPFIncluded && (old == "" || now == "")
		if old != now && !follows && !was.hides(key) && !is.hides(key, before.Findings...) {
			changes = append(changes, Change{Fact: key.fact, Of: key.of, Before: old, After: now})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Fact, b.Fact), cmp.Compare(a.Of, b.Of), cmp.Compare(a.Before+a.After, b.Before+b.After))
	})
	return changes
}

// factKey identifies a compared value within a check.
type factKey struct {
	fact   Name
	of     string
	member string // of a list; "" for a single value
}

// scope is a part of a check, or one key or host in it.
type scope struct{ part, of string }

// observation is a check as comparable values.
type observation struct {
	values map[factKey]string
	// unseen contains what the check could not determine; unevaluated the findings, by their
	// ids or the prefixes of these, that may be missing because of it.
	unseen      map[scope]bool
	unevaluated map[string]bool
	facts       *Facts // nil if there are none
}

// hides reports whether the check could not determine a fact. Before are the findings of the
// check that it is compared with.
func (o observation) hides(key factKey, before ...dmarcd.Finding) bool {
	if key.fact == NameFinding {
		if o.facts != nil && o.facts.hidesByServer(key.of) && slices.ContainsFunc(before, func(f dmarcd.Finding) bool { return f.ID == key.of }) {
			return slices.ContainsFunc(before, func(f dmarcd.Finding) bool { return f.ID == key.of && o.facts.Hides(f) })
		}
		part, _, _ := strings.Cut(key.of, ".")
		return o.unevaluated[part] || o.unevaluated[key.of]
	}
	part := key.fact.part()
	return o.unseen[scope{part: part}] || o.unseen[scope{part, key.of}]
}

// see records whether a part, or one key or host in it, could be determined.
func (o observation) see(part, of, status string) {
	if status == inconclusive {
		o.unseen[scope{part, of}] = true
		o.unevaluated[part] = true
	}
}

func (o observation) add(fact Name, value string) { o.addOf(fact, "", value) }

func (o observation) addOf(fact Name, of, value string) {
	o.values[factKey{fact: fact, of: of}] = value
}

func (o observation) addMembers(fact Name, of string, members []string) {
	for _, member := range members {
		o.values[factKey{fact, of, member}] = member
	}
}

func observe(c Check) observation {
	o := observation{values: map[factKey]string{}, unseen: map[scope]bool{}, unevaluated: map[string]bool{}, facts: c.Facts}
	o.add(NameGrade, c.Grade)
	for _, f := range c.Findings {
		o.addOf(NameFinding, f.ID, string(f.Level)) // the text may contain a number of days
	}
	if c.Facts == nil {
		return o
	}
	for _, part := range c.Facts.Unseen() {
		o.unevaluated[part] = true
	}
	o.addDMARC(c.Facts.DMARC)
	o.addSPF(c.Facts.SPF)
	o.addDKIM(c.Facts.DKIM)
	o.addMX(c.Facts.MX)
	o.addMTASTS(c.Facts.MTASTS)
	o.addTLSRPT(c.Facts.TLSRPT)
	o.addBIMI(c.Facts.BIMI)
	o.addDANE(c.Facts.DANE)
	o.addDNSSEC(c.Facts.DNSSEC)
	return o
}

func (o observation) addDMARC(f DMARC) {
	o.see("dmarc", "", f.Status)
	o.add("dmarc.status", f.Status)
	o.add("dmarc.reason", f.Reason)
	o.add(NameDMARCRecord, f.Record)
	o.add("dmarc.record_domain", f.PolicyDomain())
	o.add("dmarc.organizational_domain", f.OrganizationalDomain)
	o.add("dmarc.policy", f.Policy)
	o.add(NameDMARCApplied, f.Applied)
	o.add("dmarc.legacy.record_domain", f.Legacy.PolicyDomain())
	o.add("dmarc.legacy.organizational_domain", f.Legacy.OrganizationalDomain)
	o.add("dmarc.legacy.policy", f.Legacy.Policy)
	for _, d := range f.Destinations {
		o.addOf("dmarc.destinations.{of}.uri", d.URI, d.URI)
		o.addOf("dmarc.destinations.{of}.tag", d.URI, d.Tag)
		o.addOf("dmarc.destinations.{of}.consent", d.URI, d.Consent)
	}
}

func (o observation) addSPF(f SPF) {
	o.see("spf", "", f.Status)
	o.add("spf.status", f.Status)
	o.add("spf.reason", f.Reason)
	o.add(NameSPFRecord, f.Record)
	o.add("spf.lookups", strconv.Itoa(f.Lookups))
	o.add("spf.void_lookups", strconv.Itoa(f.VoidLookups))
	o.addSPFTerms(f.Tree)
}

func (o observation) addSPFTerms(terms []SPFTerm) {
	for _, t := range terms {
		if t.Record != "" {
			o.addOf(NameSPFIncluded, t.Term, t.Record)
		}
		o.addSPFTerms(t.Terms)
	}
}

func (o observation) addDKIM(f DKIM) {
	for _, k := range f.Keys {
		o.see("dkim", k.Selector, k.Status)
		o.addOf("dkim.{of}.selector", k.Selector, k.Selector)
		o.addOf("dkim.{of}.from", k.Selector, k.From)
		o.addOf("dkim.{of}.status", k.Selector, k.Status)
		o.addOf("dkim.{of}.reason", k.Selector, k.Reason)
		o.addOf(NameDKIMRecord, k.Selector, k.Record)
		o.addOf("dkim.{of}.algorithm", k.Selector, k.Algorithm)
		o.addOf("dkim.{of}.bits", k.Selector, strconv.Itoa(k.Bits))
		o.addOf("dkim.{of}.testing", k.Selector, strconv.FormatBool(k.Testing))
		o.addMembers("dkim.{of}.aliases.{member}", k.Selector, k.Aliases)
	}
}

func (o observation) addMX(f MX) {
	o.see("mx", "", f.Status)
	for _, h := range f.Hosts {
		o.see("mx", h.Name, h.Status)
		o.addOf(NameMXHost, h.Name, h.Name)
		o.addOf("mx.{of}.preference", h.Name, strconv.Itoa(h.Preference))
		o.addOf("mx.{of}.status", h.Name, h.Status)
		o.addMembers("mx.{of}.addresses.{member}", h.Name, h.Addresses)
	}
}

func (o observation) addMTASTS(f MTASTS) {
	o.see("mta_sts", "", f.Status)
	o.see(mtastsPolicy, "", f.Status) // a policy without a record is not fetched
	o.see(mtastsPolicy, "", f.Fetch)
	o.add("mta_sts.status", f.Status)
	o.add("mta_sts.reason", f.Reason)
	o.add(NameMTASTSRecord, f.Record)
	o.add("mta_sts.fetch", f.Fetch)
	o.add("mta_sts.mode", f.Mode)
	o.add("mta_sts.max_age", strconv.FormatInt(f.MaxAge, 10))
	o.addMembers("mta_sts.mx.{member}", "", f.MX)
}

func (o observation) addTLSRPT(f TLSRPT) {
	o.see("tls_rpt", "", f.Status)
	o.add("tls_rpt.status", f.Status)
	o.add("tls_rpt.reason", f.Reason)
	o.add(NameTLSRPTRecord, f.Record)
	o.addMembers("tls_rpt.destinations.{member}", "", f.Destinations)
}

func (o observation) addBIMI(f BIMI) {
	o.see("bimi", "", f.Status)
	o.add("bimi.status", f.Status)
	o.add("bimi.reason", f.Reason)
	o.add(NameBIMIRecord, f.Record)
	o.add("bimi.record_domain", f.RecordDomain)
	o.add("bimi.location", f.Location)
	o.add("bimi.evidence", f.Evidence)
}

func (o observation) addDANE(f DANE) {
	o.see("dane", "", f.Status)
	o.add("dane.status", f.Status)
	o.add("dane.reason", f.Reason)
	for _, h := range f.Hosts {
		o.see("dane", h.Name, h.Status)
		o.addOf("dane.hosts.{of}.host", h.Name, h.Name)
		o.addOf("dane.hosts.{of}.status", h.Name, h.Status)
		o.addMembers("dane.hosts.{of}.records.{member}", h.Name, h.Records)
	}
}

func (o observation) addDNSSEC(f DNSSEC) {
	o.see("dnssec", "", f.Status)
	o.add("dnssec.status", f.Status)
	o.add("dnssec.reason", f.Reason)
	o.add("dnssec.zone", f.Zone)
}
