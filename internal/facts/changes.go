package facts

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// Name is a fact that is compared between two checks: its path in a check of the API. Changes
// are stored with it, so names must not be changed or reused. {of} stands for Change.Of, {member}
// for a member of a list.
type Name string

// The compared facts. For some, a domain has several, one for each Change.Of; their
// comments explain it.
const (
	NameGrade   Name = "grade"
	NameFinding Name = "findings.{of}" // by id: the level

	NameDMARCStatus                     Name = "dmarc.status"
	NameDMARCReason                     Name = "dmarc.reason"
	NameDMARCRecord                     Name = "dmarc.record"
	NameDMARCRecordDomain               Name = "dmarc.record_domain"
	NameDMARCOrganizationalDomain       Name = "dmarc.organizational_domain"
	NameDMARCPolicy                     Name = "dmarc.policy"
	NameDMARCApplied                    Name = "dmarc.applied"
	NameDMARCLegacyRecordDomain         Name = "dmarc.legacy.record_domain"
	NameDMARCLegacyOrganizationalDomain Name = "dmarc.legacy.organizational_domain"
	NameDMARCLegacyPolicy               Name = "dmarc.legacy.policy"
	NameDMARCDestination                Name = "dmarc.destinations.{of}.uri"     // by URI
	NameDMARCDestinationTag             Name = "dmarc.destinations.{of}.tag"     // by URI
	NameDMARCDestinationConsent         Name = "dmarc.destinations.{of}.consent" // by URI

	NameSPFStatus      Name = "spf.status"
	NameSPFReason      Name = "spf.reason"
	NameSPFRecord      Name = "spf.record"
	NameSPFLookups     Name = "spf.lookups"
	NameSPFVoidLookups Name = "spf.void_lookups"
	NameSPFIncluded    Name = "spf.tree.{of}.record" // by term: the record it refers to

	NameDKIMSelector  Name = "dkim.{of}.selector"         // by selector
	NameDKIMFrom      Name = "dkim.{of}.from"             // by selector
	NameDKIMStatus    Name = "dkim.{of}.status"           // by selector
	NameDKIMReason    Name = "dkim.{of}.reason"           // by selector
	NameDKIMRecord    Name = "dkim.{of}.record"           // by selector
	NameDKIMAlgorithm Name = "dkim.{of}.algorithm"        // by selector
	NameDKIMBits      Name = "dkim.{of}.bits"             // by selector
	NameDKIMTesting   Name = "dkim.{of}.testing"          // by selector
	NameDKIMAlias     Name = "dkim.{of}.aliases.{member}" // by selector: a member

	NameMXHost       Name = "mx.{of}.host"               // by host
	NameMXPreference Name = "mx.{of}.preference"         // by host
	NameMXStatus     Name = "mx.{of}.status"             // by host
	NameMXAddress    Name = "mx.{of}.addresses.{member}" // by host: a member

	NameMTASTSStatus Name = "mta_sts.status"
	NameMTASTSReason Name = "mta_sts.reason"
	NameMTASTSRecord Name = "mta_sts.record"
	NameMTASTSFetch  Name = "mta_sts.fetch"
	NameMTASTSMode   Name = "mta_sts.mode"
	NameMTASTSMaxAge Name = "mta_sts.max_age"     // seconds
	NameMTASTSMX     Name = "mta_sts.mx.{member}" // a member

	NameTLSRPTStatus      Name = "tls_rpt.status"
	NameTLSRPTReason      Name = "tls_rpt.reason"
	NameTLSRPTRecord      Name = "tls_rpt.record"
	NameTLSRPTDestination Name = "tls_rpt.destinations.{member}" // a member

	NameBIMIStatus       Name = "bimi.status"
	NameBIMIReason       Name = "bimi.reason"
	NameBIMIRecord       Name = "bimi.record"
	NameBIMIRecordDomain Name = "bimi.record_domain"
	NameBIMILocation     Name = "bimi.location"
	NameBIMIEvidence     Name = "bimi.evidence"

	NameDANEStatus     Name = "dane.status"
	NameDANEReason     Name = "dane.reason"
	NameDANEHost       Name = "dane.hosts.{of}.host"             // by host
	NameDANEHostStatus Name = "dane.hosts.{of}.status"           // by host
	NameDANERecord     Name = "dane.hosts.{of}.records.{member}" // by host: a member

	NameDNSSECStatus Name = "dnssec.status"
	NameDNSSECReason Name = "dnssec.reason"
	NameDNSSECZone   Name = "dnssec.zone"
)

// Path returns the path of a change in a check of the API.
func (c Change) Path() string {
	return strings.NewReplacer("{of}", c.Of, "{member}", c.Before+c.After).Replace(string(c.Fact))
}

// part is what the fact is about, such as dmarc or mta-sts. The policy of MTA-STS is one of its own:
// it may be unknown while the record is known.
func (n Name) part() string {
	switch n {
	case NameMTASTSFetch, NameMTASTSMode, NameMTASTSMaxAge, NameMTASTSMX:
		return "mta-sts-policy"
	}
	part, _, _ := strings.Cut(string(n), ".")
	return strings.ReplaceAll(part, "_", "-")
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
	// unseen contains what the check could not determine; unjudged the findings, by their
	// ids or the prefixes of these, that may be missing because of it.
	unseen   map[scope]bool
	unjudged map[string]bool
	facts    *Facts // nil if there are none
}

// hides reports whether the check could not determine a fact. Before are the findings of the
// check that it is compared with.
func (o observation) hides(key factKey, before ...dmarcd.Finding) bool {
	if key.fact == NameFinding {
		if o.facts != nil && o.facts.hidesByServer(key.of) && slices.ContainsFunc(before, func(f dmarcd.Finding) bool { return f.ID == key.of }) {
			return slices.ContainsFunc(before, func(f dmarcd.Finding) bool { return f.ID == key.of && o.facts.Hides(f) })
		}
		part, _, _ := strings.Cut(key.of, ".")
		return o.unjudged[part] || o.unjudged[key.of]
	}
	part := key.fact.part()
	return o.unseen[scope{part: part}] || o.unseen[scope{part, key.of}]
}

// see records whether a part, or one key or host in it, could be determined.
func (o observation) see(part, of, status string) {
	if status == inconclusive {
		o.unseen[scope{part, of}] = true
		o.unjudged[part] = true
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
	o := observation{values: map[factKey]string{}, unseen: map[scope]bool{}, unjudged: map[string]bool{}, facts: c.Facts}
	o.add(NameGrade, c.Grade)
	for _, f := range c.Findings {
		o.addOf(NameFinding, f.ID, string(f.Level)) // the text may contain a number of days
	}
	if c.Facts == nil {
		return o
	}
	for _, part := range c.Facts.Unseen() {
		o.unjudged[part] = true
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
	o.add(NameDMARCStatus, f.Status)
	o.add(NameDMARCReason, f.Reason)
	o.add(NameDMARCRecord, f.Record)
	o.add(NameDMARCRecordDomain, f.PolicyDomain())
	o.add(NameDMARCOrganizationalDomain, f.OrganizationalDomain)
	o.add(NameDMARCPolicy, f.Policy)
	o.add(NameDMARCApplied, f.Applied)
	o.add(NameDMARCLegacyRecordDomain, f.Legacy.PolicyDomain())
	o.add(NameDMARCLegacyOrganizationalDomain, f.Legacy.OrganizationalDomain)
	o.add(NameDMARCLegacyPolicy, f.Legacy.Policy)
	for _, d := range f.Destinations {
		o.addOf(NameDMARCDestination, d.URI, d.URI)
		o.addOf(NameDMARCDestinationTag, d.URI, d.Tag)
		o.addOf(NameDMARCDestinationConsent, d.URI, d.Consent)
	}
}

func (o observation) addSPF(f SPF) {
	o.see("spf", "", f.Status)
	o.add(NameSPFStatus, f.Status)
	o.add(NameSPFReason, f.Reason)
	o.add(NameSPFRecord, f.Record)
	o.add(NameSPFLookups, strconv.Itoa(f.Lookups))
	o.add(NameSPFVoidLookups, strconv.Itoa(f.VoidLookups))
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
		o.addOf(NameDKIMSelector, k.Selector, k.Selector)
		o.addOf(NameDKIMFrom, k.Selector, k.From)
		o.addOf(NameDKIMStatus, k.Selector, k.Status)
		o.addOf(NameDKIMReason, k.Selector, k.Reason)
		o.addOf(NameDKIMRecord, k.Selector, k.Record)
		o.addOf(NameDKIMAlgorithm, k.Selector, k.Algorithm)
		o.addOf(NameDKIMBits, k.Selector, strconv.Itoa(k.Bits))
		o.addOf(NameDKIMTesting, k.Selector, strconv.FormatBool(k.Testing))
		o.addMembers(NameDKIMAlias, k.Selector, k.Aliases)
	}
}

func (o observation) addMX(f MX) {
	o.see("mx", "", f.Status)
	for _, h := range f.Hosts {
		o.see("mx", h.Name, h.Status)
		o.addOf(NameMXHost, h.Name, h.Name)
		o.addOf(NameMXPreference, h.Name, strconv.Itoa(h.Preference))
		o.addOf(NameMXStatus, h.Name, h.Status)
		o.addMembers(NameMXAddress, h.Name, h.Addresses)
	}
}

func (o observation) addMTASTS(f MTASTS) {
	o.see("mta-sts", "", f.Status)
	o.see(NameMTASTSFetch.part(), "", f.Status) // a policy without a record is not fetched
	o.see(NameMTASTSFetch.part(), "", f.Fetch)
	o.add(NameMTASTSStatus, f.Status)
	o.add(NameMTASTSReason, f.Reason)
	o.add(NameMTASTSRecord, f.Record)
	o.add(NameMTASTSFetch, f.Fetch)
	o.add(NameMTASTSMode, f.Mode)
	o.add(NameMTASTSMaxAge, strconv.FormatInt(f.MaxAge, 10))
	o.addMembers(NameMTASTSMX, "", f.MX)
}

func (o observation) addTLSRPT(f TLSRPT) {
	o.see("tls-rpt", "", f.Status)
	o.add(NameTLSRPTStatus, f.Status)
	o.add(NameTLSRPTReason, f.Reason)
	o.add(NameTLSRPTRecord, f.Record)
	o.addMembers(NameTLSRPTDestination, "", f.Destinations)
}

func (o observation) addBIMI(f BIMI) {
	o.see("bimi", "", f.Status)
	o.add(NameBIMIStatus, f.Status)
	o.add(NameBIMIReason, f.Reason)
	o.add(NameBIMIRecord, f.Record)
	o.add(NameBIMIRecordDomain, f.RecordDomain)
	o.add(NameBIMILocation, f.Location)
	o.add(NameBIMIEvidence, f.Evidence)
}

func (o observation) addDANE(f DANE) {
	o.see("dane", "", f.Status)
	o.add(NameDANEStatus, f.Status)
	o.add(NameDANEReason, f.Reason)
	for _, h := range f.Hosts {
		o.see("dane", h.Name, h.Status)
		o.addOf(NameDANEHost, h.Name, h.Name)
		o.addOf(NameDANEHostStatus, h.Name, h.Status)
		o.addMembers(NameDANERecord, h.Name, h.Records)
	}
}

func (o observation) addDNSSEC(f DNSSEC) {
	o.see("dnssec", "", f.Status)
	o.add(NameDNSSECStatus, f.Status)
	o.add(NameDNSSECReason, f.Reason)
	o.add(NameDNSSECZone, f.Zone)
}
