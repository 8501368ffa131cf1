package dmarcd

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// FactName is a fact that is compared between two checks: its path in a check of the API. Changes
// are stored with it, so names must not be changed or reused. {of} stands for Change.Of, {member}
// for a member of a list.
type FactName string

// The compared facts. For some, a domain has several, one for each Change.Of; their
// comments say what it is.
const (
	FactGrade   FactName = "grade"
	FactFinding FactName = "findings.{of}" // by id: the level

	FactDMARCStatus                     FactName = "dmarc.status"
	FactDMARCReason                     FactName = "dmarc.reason"
	FactDMARCRecord                     FactName = "dmarc.record"
	FactDMARCRecordDomain               FactName = "dmarc.record_domain"
	FactDMARCOrganizationalDomain       FactName = "dmarc.organizational_domain"
	FactDMARCPolicy                     FactName = "dmarc.policy"
	FactDMARCApplied                    FactName = "dmarc.applied"
	FactDMARCLegacyRecordDomain         FactName = "dmarc.legacy.record_domain"
	FactDMARCLegacyOrganizationalDomain FactName = "dmarc.legacy.organizational_domain"
	FactDMARCLegacyPolicy               FactName = "dmarc.legacy.policy"
	FactDMARCDestination                FactName = "dmarc.destinations.{of}.uri"     // by URI
	FactDMARCDestinationTag             FactName = "dmarc.destinations.{of}.tag"     // by URI
	FactDMARCDestinationConsent         FactName = "dmarc.destinations.{of}.consent" // by URI

	FactSPFStatus      FactName = "spf.status"
	FactSPFReason      FactName = "spf.reason"
	FactSPFRecord      FactName = "spf.record"
	FactSPFLookups     FactName = "spf.lookups"
	FactSPFVoidLookups FactName = "spf.void_lookups"
	FactSPFIncluded    FactName = "spf.tree.{of}.record" // by term: the record it refers to

	FactDKIMSelector  FactName = "dkim.{of}.selector"         // by selector
	FactDKIMFrom      FactName = "dkim.{of}.from"             // by selector
	FactDKIMStatus    FactName = "dkim.{of}.status"           // by selector
	FactDKIMReason    FactName = "dkim.{of}.reason"           // by selector
	FactDKIMRecord    FactName = "dkim.{of}.record"           // by selector
	FactDKIMAlgorithm FactName = "dkim.{of}.algorithm"        // by selector
	FactDKIMBits      FactName = "dkim.{of}.bits"             // by selector
	FactDKIMTesting   FactName = "dkim.{of}.testing"          // by selector
	FactDKIMAlias     FactName = "dkim.{of}.aliases.{member}" // by selector: a member

	FactMXHost       FactName = "mx.{of}.host"               // by host
	FactMXPreference FactName = "mx.{of}.preference"         // by host
	FactMXStatus     FactName = "mx.{of}.status"             // by host
	FactMXAddress    FactName = "mx.{of}.addresses.{member}" // by host: a member

	FactMTASTSStatus FactName = "mta_sts.status"
	FactMTASTSReason FactName = "mta_sts.reason"
	FactMTASTSRecord FactName = "mta_sts.record"
	FactMTASTSFetch  FactName = "mta_sts.fetch"
	FactMTASTSMode   FactName = "mta_sts.mode"
	FactMTASTSMaxAge FactName = "mta_sts.max_age"     // seconds
	FactMTASTSMX     FactName = "mta_sts.mx.{member}" // a member

	FactTLSRPTStatus      FactName = "tls_rpt.status"
	FactTLSRPTReason      FactName = "tls_rpt.reason"
	FactTLSRPTRecord      FactName = "tls_rpt.record"
	FactTLSRPTDestination FactName = "tls_rpt.destinations.{member}" // a member

	FactBIMIStatus       FactName = "bimi.status"
	FactBIMIReason       FactName = "bimi.reason"
	FactBIMIRecord       FactName = "bimi.record"
	FactBIMIRecordDomain FactName = "bimi.record_domain"
	FactBIMILocation     FactName = "bimi.location"
	FactBIMIEvidence     FactName = "bimi.evidence"

	FactDANEStatus     FactName = "dane.status"
	FactDANEReason     FactName = "dane.reason"
	FactDANEHost       FactName = "dane.hosts.{of}.host"             // by host
	FactDANEHostStatus FactName = "dane.hosts.{of}.status"           // by host
	FactDANERecord     FactName = "dane.hosts.{of}.records.{member}" // by host: a member

	FactDNSSECStatus FactName = "dnssec.status"
	FactDNSSECReason FactName = "dnssec.reason"
	FactDNSSECZone   FactName = "dnssec.zone"
)

// Path returns the path of a change in a check of the API.
func (c Change) Path() string {
	return strings.NewReplacer("{of}", c.Of, "{member}", c.Before+c.After).Replace(string(c.Fact))
}

// part is what the fact is about, such as dmarc or mta-sts. The policy of MTA-STS is one of its own:
// it may be unknown while the record is known.
func (n FactName) part() string {
	switch n {
	case FactMTASTSFetch, FactMTASTSMode, FactMTASTSMaxAge, FactMTASTSMX:
		return "mta-sts-policy"
	}
	part, _, _ := strings.Cut(string(n), ".")
	return strings.ReplaceAll(part, "_", "-")
}

// Change is one difference between two checks of a domain, with the names of its stored document.
type Change struct {
	Fact FactName `json:"fact"`
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
		follows := key.fact == FactSPFIncluded && (old == "" || now == "")
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
	fact   FactName
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
func (o observation) hides(key factKey, before ...Finding) bool {
	if key.fact == FactFinding {
		if o.facts != nil && o.facts.hidesByServer(key.of) && slices.ContainsFunc(before, func(f Finding) bool { return f.ID == key.of }) {
			return slices.ContainsFunc(before, func(f Finding) bool { return f.ID == key.of && o.facts.Hides(f) })
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

func (o observation) add(fact FactName, value string) { o.addOf(fact, "", value) }

func (o observation) addOf(fact FactName, of, value string) {
	o.values[factKey{fact: fact, of: of}] = value
}

func (o observation) addMembers(fact FactName, of string, members []string) {
	for _, member := range members {
		o.values[factKey{fact, of, member}] = member
	}
}

func observe(c Check) observation {
	o := observation{values: map[factKey]string{}, unseen: map[scope]bool{}, unjudged: map[string]bool{}, facts: c.Facts}
	o.add(FactGrade, c.Grade)
	for _, f := range c.Findings {
		o.addOf(FactFinding, f.ID, string(f.Level)) // the text may contain a number of days
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

func (o observation) addDMARC(f DMARCFacts) {
	o.see("dmarc", "", f.Status)
	o.add(FactDMARCStatus, f.Status)
	o.add(FactDMARCReason, f.Reason)
	o.add(FactDMARCRecord, f.Record)
	o.add(FactDMARCRecordDomain, f.PolicyDomain())
	o.add(FactDMARCOrganizationalDomain, f.OrganizationalDomain)
	o.add(FactDMARCPolicy, f.Policy)
	o.add(FactDMARCApplied, f.Applied)
	o.add(FactDMARCLegacyRecordDomain, f.Legacy.PolicyDomain())
	o.add(FactDMARCLegacyOrganizationalDomain, f.Legacy.OrganizationalDomain)
	o.add(FactDMARCLegacyPolicy, f.Legacy.Policy)
	for _, d := range f.Destinations {
		o.addOf(FactDMARCDestination, d.URI, d.URI)
		o.addOf(FactDMARCDestinationTag, d.URI, d.Tag)
		o.addOf(FactDMARCDestinationConsent, d.URI, d.Consent)
	}
}

func (o observation) addSPF(f SPFFacts) {
	o.see("spf", "", f.Status)
	o.add(FactSPFStatus, f.Status)
	o.add(FactSPFReason, f.Reason)
	o.add(FactSPFRecord, f.Record)
	o.add(FactSPFLookups, strconv.Itoa(f.Lookups))
	o.add(FactSPFVoidLookups, strconv.Itoa(f.VoidLookups))
	o.addSPFTerms(f.Tree)
}

func (o observation) addSPFTerms(terms []SPFTerm) {
	for _, t := range terms {
		if t.Record != "" {
			o.addOf(FactSPFIncluded, t.Term, t.Record)
		}
		o.addSPFTerms(t.Terms)
	}
}

func (o observation) addDKIM(f DKIMFacts) {
	for _, k := range f.Keys {
		o.see("dkim", k.Selector, k.Status)
		o.addOf(FactDKIMSelector, k.Selector, k.Selector)
		o.addOf(FactDKIMFrom, k.Selector, k.From)
		o.addOf(FactDKIMStatus, k.Selector, k.Status)
		o.addOf(FactDKIMReason, k.Selector, k.Reason)
		o.addOf(FactDKIMRecord, k.Selector, k.Record)
		o.addOf(FactDKIMAlgorithm, k.Selector, k.Algorithm)
		o.addOf(FactDKIMBits, k.Selector, strconv.Itoa(k.Bits))
		o.addOf(FactDKIMTesting, k.Selector, strconv.FormatBool(k.Testing))
		o.addMembers(FactDKIMAlias, k.Selector, k.Aliases)
	}
}

func (o observation) addMX(f MXFacts) {
	o.see("mx", "", f.Status)
	for _, h := range f.Hosts {
		o.see("mx", h.Name, h.Status)
		o.addOf(FactMXHost, h.Name, h.Name)
		o.addOf(FactMXPreference, h.Name, strconv.Itoa(h.Preference))
		o.addOf(FactMXStatus, h.Name, h.Status)
		o.addMembers(FactMXAddress, h.Name, h.Addresses)
	}
}

func (o observation) addMTASTS(f MTASTSFacts) {
	o.see("mta-sts", "", f.Status)
	o.see(FactMTASTSFetch.part(), "", f.Status) // a policy without a record is not fetched
	o.see(FactMTASTSFetch.part(), "", f.Fetch)
	o.add(FactMTASTSStatus, f.Status)
	o.add(FactMTASTSReason, f.Reason)
	o.add(FactMTASTSRecord, f.Record)
	o.add(FactMTASTSFetch, f.Fetch)
	o.add(FactMTASTSMode, f.Mode)
	o.add(FactMTASTSMaxAge, strconv.FormatInt(f.MaxAge, 10))
	o.addMembers(FactMTASTSMX, "", f.MX)
}

func (o observation) addTLSRPT(f TLSRPTFacts) {
	o.see("tls-rpt", "", f.Status)
	o.add(FactTLSRPTStatus, f.Status)
	o.add(FactTLSRPTReason, f.Reason)
	o.add(FactTLSRPTRecord, f.Record)
	o.addMembers(FactTLSRPTDestination, "", f.Destinations)
}

func (o observation) addBIMI(f BIMIFacts) {
	o.see("bimi", "", f.Status)
	o.add(FactBIMIStatus, f.Status)
	o.add(FactBIMIReason, f.Reason)
	o.add(FactBIMIRecord, f.Record)
	o.add(FactBIMIRecordDomain, f.RecordDomain)
	o.add(FactBIMILocation, f.Location)
	o.add(FactBIMIEvidence, f.Evidence)
}

func (o observation) addDANE(f DANEFacts) {
	o.see("dane", "", f.Status)
	o.add(FactDANEStatus, f.Status)
	o.add(FactDANEReason, f.Reason)
	for _, h := range f.Hosts {
		o.see("dane", h.Name, h.Status)
		o.addOf(FactDANEHost, h.Name, h.Name)
		o.addOf(FactDANEHostStatus, h.Name, h.Status)
		o.addMembers(FactDANERecord, h.Name, h.Records)
	}
}

func (o observation) addDNSSEC(f DNSSECFacts) {
	o.see("dnssec", "", f.Status)
	o.add(FactDNSSECStatus, f.Status)
	o.add(FactDNSSECReason, f.Reason)
	o.add(FactDNSSECZone, f.Zone)
}
