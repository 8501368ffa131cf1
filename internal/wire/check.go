package wire

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
)

// Check is a full check of a domain. Lists are never null.
type Check struct {
	Domain    string    `json:"domain"`
	CheckedAt string    `json:"checked_at"`
	Grade     Text      `json:"grade"` // null if the policy is unknown
	DMARC     DMARC     `json:"dmarc"`
	SPF       SPF       `json:"spf"`
	DKIM      []DKIMKey `json:"dkim"`
	MX        []MXHost  `json:"mx"`
	MTASTS    MTASTS    `json:"mta_sts"`
	TLSRPT    TLSRPT    `json:"tls_rpt"`
	BIMI      BIMI      `json:"bimi"`
	DANE      DANE      `json:"dane"`
	DNSSEC    DNSSEC    `json:"dnssec"`
	Findings  []Finding `json:"findings"`
	NextStep  *Finding  `json:"next_step"` // null if there is nothing to fix
}

// DMARC is the policy that receivers find. Policy, EffectivePolicy and RecordDomain are null if no
// policy applies.
type DMARC struct {
	Status               string        `json:"status"`
	Reason               Text          `json:"reason"`
	Record               Text          `json:"record"`
	RecordDomain         Text          `json:"record_domain"`
	OrganizationalDomain Text          `json:"organizational_domain"`
	Policy               Text          `json:"policy"`
	EffectivePolicy      Text          `json:"effective_policy"`
	Queries              []string      `json:"queries"`
	Legacy               Legacy        `json:"legacy"`
	Destinations         []Destination `json:"destinations"`
}

// Legacy is the policy that receivers find under RFC 7489.
type Legacy struct {
	RecordDomain         Text `json:"record_domain"`
	OrganizationalDomain Text `json:"organizational_domain"`
	Policy               Text `json:"policy"`
}

// Destination is where reports go.
type Destination struct {
	Tag     string `json:"tag"`
	URI     string `json:"uri"`
	Consent string `json:"consent"`
}

// SPF is the SPF record with the tree of lookups.
type SPF struct {
	Status      string    `json:"status"`
	Reason      Text      `json:"reason"`
	Record      Text      `json:"record"`
	Lookups     int       `json:"lookups"`
	VoidLookups int       `json:"void_lookups"`
	Tree        []SPFTerm `json:"tree"`
}

// SPFTerm is one term, with the record that it refers to.
type SPFTerm struct {
	Term     string    `json:"term"`
	Target   Text      `json:"target"`
	Provider Text      `json:"provider"`
	Cost     int       `json:"cost"`
	Lookups  int       `json:"lookups"`
	Note     Text      `json:"note"`
	Record   Text      `json:"record"`
	Terms    []SPFTerm `json:"terms"`
}

// DKIMKey is one selector.
type DKIMKey struct {
	Selector  string   `json:"selector"`
	From      string   `json:"from"`
	Status    string   `json:"status"`
	Reason    Text     `json:"reason"`
	Record    Text     `json:"record"`
	Algorithm Text     `json:"algorithm"`
	Bits      int      `json:"bits"`
	Testing   bool     `json:"testing"`
	Aliases   []string `json:"aliases"`
}

// MXHost is one mail server.
type MXHost struct {
	Host       string   `json:"host"`
	Preference int      `json:"preference"`
	Status     string   `json:"status"`
	Addresses  []string `json:"addresses"`
}

// MTASTS is the record and the policy of MTA-STS.
type MTASTS struct {
	Status string   `json:"status"`
	Reason Text     `json:"reason"`
	Record Text     `json:"record"`
	Fetch  Text     `json:"fetch"`
	Mode   Text     `json:"mode"`
	MaxAge int64    `json:"max_age"` // seconds
	MX     []string `json:"mx"`
}

// TLSRPT is the record that asks for TLS reports.
type TLSRPT struct {
	Status       string   `json:"status"`
	Reason       Text     `json:"reason"`
	Record       Text     `json:"record"`
	Destinations []string `json:"destinations"`
}

// BIMI is the record of the logo.
type BIMI struct {
	Status       string `json:"status"`
	Reason       Text   `json:"reason"`
	Record       Text   `json:"record"`
	RecordDomain Text   `json:"record_domain"`
	Location     Text   `json:"location"`
	Evidence     Text   `json:"evidence"`
}

// DANE is the DANE result for the mail servers.
type DANE struct {
	Status string     `json:"status"`
	Reason Text       `json:"reason"`
	Hosts  []DANEHost `json:"hosts"`
}

// DANEHost is one mail server with its TLSA records.
type DANEHost struct {
	Host    string   `json:"host"`
	Status  string   `json:"status"`
	Records []string `json:"records"`
}

// DNSSEC is whether the zone of the domain is signed.
type DNSSEC struct {
	Status string `json:"status"`
	Reason Text   `json:"reason"`
	Zone   Text   `json:"zone"`
}

// Finding is a conclusion of a check. Fix ends with Record, if the finding has one.
type Finding struct {
	ID     string `json:"id"`
	Level  string `json:"level"`
	What   string `json:"what"`
	Why    string `json:"why"`
	Fix    Text   `json:"fix"`
	Record Text   `json:"record"`
	RFC    string `json:"rfc"`
	Points int    `json:"points"`
}

// NewCheck returns the shape of a check with facts.
func NewCheck(c facts.Check) Check {
	f := *c.Facts
	shape := Check{
		Domain: f.Domain, CheckedAt: Time(c.At), Grade: Text(c.Grade),
		DMARC: newDMARC(f.DMARC),
		SPF: SPF{
			Status: f.SPF.Status, Reason: Text(f.SPF.Reason), Record: Text(f.SPF.Record),
			Lookups: f.SPF.Lookups, VoidLookups: f.SPF.VoidLookups, Tree: list(f.SPF.Tree, newSPFTerm),
		},
		DKIM: list(f.DKIM.Keys, newDKIMKey),
		MX: list(f.MX.Hosts, func(h facts.MXHost) MXHost {
			return MXHost{Host: h.Name, Preference: h.Preference, Status: word(h.Status), Addresses: notNull(h.Addresses)}
		}),
		MTASTS: MTASTS{
			Status: f.MTASTS.Status, Reason: Text(f.MTASTS.Reason), Record: Text(f.MTASTS.Record), Fetch: Text(word(f.MTASTS.Fetch)),
			Mode: Text(f.MTASTS.Mode), MaxAge: f.MTASTS.MaxAge, MX: notNull(f.MTASTS.MX),
		},
		TLSRPT: TLSRPT{
			Status: f.TLSRPT.Status, Reason: Text(f.TLSRPT.Reason), Record: Text(f.TLSRPT.Record),
			Destinations: notNull(f.TLSRPT.Destinations),
		},
		BIMI: BIMI{
			Status: f.BIMI.Status, Reason: Text(f.BIMI.Reason), Record: Text(f.BIMI.Record), RecordDomain: Text(f.BIMI.RecordDomain),
			Location: Text(f.BIMI.Location), Evidence: Text(f.BIMI.Evidence),
		},
		DANE: DANE{Status: f.DANE.Status, Reason: Text(f.DANE.Reason), Hosts: list(f.DANE.Hosts, func(h facts.DANEHost) DANEHost {
			return DANEHost{Host: h.Name, Status: h.Status, Records: notNull(h.Records)}
		})},
		DNSSEC:   DNSSEC{Status: f.DNSSEC.Status, Reason: Text(f.DNSSEC.Reason), Zone: Text(f.DNSSEC.Zone)},
		Findings: list(c.Findings, newFinding),
	}
	if c.Next != nil {
		shape.NextStep = new(newFinding(*c.Next))
	}
	return shape
}

// newFinding returns the shape of a finding.
func newFinding(f dmarcd.Finding) Finding {
	return Finding{
		ID: f.ID, Level: string(f.Level), What: f.What, Why: f.Why, Fix: Text(f.FullFix()), Record: Text(f.Record.String()), RFC: f.RFC, Points: f.Points,
	}
}

func newDMARC(f facts.DMARC) DMARC {
	return DMARC{
		Status: f.Status, Reason: Text(f.Reason), Record: Text(f.Record), RecordDomain: Text(f.PolicyDomain()),
		OrganizationalDomain: Text(f.OrganizationalDomain), Policy: Text(f.Policy), EffectivePolicy: Text(f.Applied), Queries: notNull(f.Queries),
		Legacy: Legacy{
			RecordDomain: Text(f.Legacy.PolicyDomain()), OrganizationalDomain: Text(f.Legacy.OrganizationalDomain), Policy: Text(f.Legacy.Policy),
		},
		Destinations: list(f.Destinations, func(d facts.Destination) Destination {
			return Destination{Tag: d.Tag, URI: d.URI, Consent: word(d.Consent)}
		}),
	}
}

func newSPFTerm(t facts.SPFTerm) SPFTerm {
	return SPFTerm{
		Term: t.Term, Target: Text(t.Target), Provider: Text(t.Provider), Cost: t.Cost, Lookups: t.Lookups, Note: Text(t.Note),
		Record: Text(t.Record), Terms: list(t.Terms, newSPFTerm),
	}
}

func newDKIMKey(k facts.DKIMKey) DKIMKey {
	return DKIMKey{
		Selector: k.Selector, From: k.From, Status: k.Status, Reason: Text(k.Reason), Record: Text(k.Record),
		Algorithm: Text(k.Algorithm), Bits: k.Bits, Testing: k.Testing, Aliases: notNull(k.Aliases),
	}
}

// StoredCheck is an entry of a domain's history: a check that had the same result from FirstAt
// to CheckedAt, and its changes from the previous entry.
type StoredCheck struct {
	ID      *string `json:"id"` // null if DNS has never answered, so that there is no entry
	FirstAt string  `json:"first_at"`
	Check
	Changes []Change `json:"changes"`
}

// NewStoredCheck returns the shape of an entry.
func NewStoredCheck(c facts.StoredCheck) StoredCheck {
	changes := list(c.Changes, newChange)
	slices.SortStableFunc(changes, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	shape := StoredCheck{FirstAt: Time(c.FirstAt), Check: NewCheck(c.Check), Changes: changes}
	if c.ID != 0 {
		shape.ID = new(c.ID.String())
	}
	return shape
}

// DomainChange is a check of a domain that found changes in DNS. Kinds are the parts of the check that
// changed, such as spf.
type DomainChange struct {
	ID      string   `json:"id"`
	Domain  string   `json:"domain"`
	At      string   `json:"at"`
	Grade   *string  `json:"grade"`
	Kinds   []string `json:"kinds"`
	Changes []Change `json:"changes"`
}

// NewDomainChange returns the shape of such a check.
func NewDomainChange(c facts.DomainChange) DomainChange {
	changes := list(c.Changes, newChange)
	slices.SortStableFunc(changes, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	return DomainChange{
		ID: c.ID.String(), Domain: c.Domain, At: Time(c.At), Grade: optionalText(c.Grade),
		Kinds: list(c.Parts, func(part facts.Part) string { return string(part) }), Changes: changes,
	}
}

// word writes a word of an enumeration as all others.
func word(text string) string { return strings.ReplaceAll(text, " ", "_") }

// Change is one difference between two checks. Path names the member, such as dmarc.record or
// dkim.google.bits. In the SPF tree, only records that terms of both checks refer to are compared,
// once each and independent of their depth: spf.tree.include:_spf.example.com.record. Other
// differences of the tree follow from these and from spf.record.
type Change struct {
	Path   string `json:"path"`
	Before Text   `json:"before"` // null if it was added
	After  Text   `json:"after"`  // null if it was removed
}

func newChange(c facts.Change) Change {
	switch c.Fact {
	case "dmarc.destinations.{of}.consent", "mx.{of}.status", "mta_sts.fetch":
		c.Before, c.After = word(c.Before), word(c.After)
	}
	return Change{Path: c.Path(), Before: Text(c.Before), After: Text(c.After)}
}
