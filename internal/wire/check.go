package wire

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
)

// Check is a full check of a domain. Lists are never null.
type Check struct {
	Domain    string    `json:"domain"`
	CheckedAt string    `json:"checked_at"`
	Grade     Word      `json:"grade"` // "" if the policy is unknown
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

// DMARC is the policy that receivers find. Policy, Applied and RecordDomain are "" if no policy
// applies.
type DMARC struct {
	Status               string        `json:"status"`
	Reason               string        `json:"reason,omitempty"`
	Record               string        `json:"record"`
	RecordDomain         string        `json:"record_domain"`
	OrganizationalDomain string        `json:"organizational_domain"`
	Policy               Word          `json:"policy"`
	Applied              Word          `json:"applied"`
	Queries              []string      `json:"queries"`
	Legacy               Legacy        `json:"legacy"`
	Destinations         []Destination `json:"destinations"`
}

// Legacy is the policy that receivers find under RFC 7489.
type Legacy struct {
	RecordDomain         string `json:"record_domain"`
	OrganizationalDomain string `json:"organizational_domain"`
	Policy               Word   `json:"policy"`
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
	Reason      string    `json:"reason,omitempty"`
	Record      string    `json:"record"`
	Lookups     int       `json:"lookups"`
	VoidLookups int       `json:"void_lookups"`
	Tree        []SPFTerm `json:"tree"`
}

// SPFTerm is one term, with the record that it refers to.
type SPFTerm struct {
	Term     string    `json:"term"`
	Target   string    `json:"target"`
	Provider string    `json:"provider"`
	Cost     int       `json:"cost"`
	Lookups  int       `json:"lookups"`
	Note     string    `json:"note"`
	Record   string    `json:"record"`
	Terms    []SPFTerm `json:"terms"`
}

// DKIMKey is one selector.
type DKIMKey struct {
	Selector  string   `json:"selector"`
	From      string   `json:"from"`
	Status    string   `json:"status"`
	Reason    string   `json:"reason,omitempty"`
	Record    string   `json:"record"`
	Algorithm string   `json:"algorithm"`
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
	Reason string   `json:"reason,omitempty"`
	Record string   `json:"record"`
	Fetch  Word     `json:"fetch"`
	Mode   Word     `json:"mode"`
	MaxAge int64    `json:"max_age"` // seconds
	MX     []string `json:"mx"`
}

// TLSRPT is the record that asks for TLS reports.
type TLSRPT struct {
	Status       string   `json:"status"`
	Reason       string   `json:"reason,omitempty"`
	Record       string   `json:"record"`
	Destinations []string `json:"destinations"`
}

// BIMI is the record of the logo.
type BIMI struct {
	Status       string `json:"status"`
	Reason       string `json:"reason,omitempty"`
	Record       string `json:"record"`
	RecordDomain string `json:"record_domain"`
	Location     string `json:"location"`
	Evidence     string `json:"evidence"`
}

// DANE is the DANE result for the mail servers.
type DANE struct {
	Status string     `json:"status"`
	Reason string     `json:"reason,omitempty"`
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
	Reason string `json:"reason,omitempty"`
	Zone   string `json:"zone"`
}

// Finding is a conclusion of a check. Fix ends with Record, if the finding has one.
type Finding struct {
	ID     string `json:"id"`
	Level  string `json:"level"`
	What   string `json:"what"`
	Why    string `json:"why"`
	Fix    string `json:"fix"`
	Record string `json:"record"`
	RFC    string `json:"rfc"`
	Points int    `json:"points"`
}

// NewCheck returns the shape of a check with facts.
func NewCheck(c facts.Check) Check {
	f := *c.Facts
	shape := Check{
		Domain: f.Domain, CheckedAt: Time(c.At), Grade: Word(c.Grade),
		DMARC: newDMARC(f.DMARC),
		SPF: SPF{
			Status: f.SPF.Status, Reason: f.SPF.Reason, Record: f.SPF.Record,
			Lookups: f.SPF.Lookups, VoidLookups: f.SPF.VoidLookups, Tree: list(f.SPF.Tree, newSPFTerm),
		},
		DKIM: list(f.DKIM.Keys, newDKIMKey),
		MX: list(f.MX.Hosts, func(h facts.MXHost) MXHost {
			return MXHost{Host: h.Name, Preference: h.Preference, Status: word(h.Status), Addresses: notNull(h.Addresses)}
		}),
		MTASTS: MTASTS{
			Status: f.MTASTS.Status, Reason: f.MTASTS.Reason, Record: f.MTASTS.Record, Fetch: Word(word(f.MTASTS.Fetch)),
			Mode: Word(f.MTASTS.Mode), MaxAge: f.MTASTS.MaxAge, MX: notNull(f.MTASTS.MX),
		},
		TLSRPT: TLSRPT{
			Status: f.TLSRPT.Status, Reason: f.TLSRPT.Reason, Record: f.TLSRPT.Record,
			Destinations: notNull(f.TLSRPT.Destinations),
		},
		BIMI: BIMI{
			Status: f.BIMI.Status, Reason: f.BIMI.Reason, Record: f.BIMI.Record, RecordDomain: f.BIMI.RecordDomain,
			Location: f.BIMI.Location, Evidence: f.BIMI.Evidence,
		},
		DANE: DANE{Status: f.DANE.Status, Reason: f.DANE.Reason, Hosts: list(f.DANE.Hosts, func(h facts.DANEHost) DANEHost {
			return DANEHost{Host: h.Name, Status: h.Status, Records: notNull(h.Records)}
		})},
		DNSSEC:   DNSSEC{Status: f.DNSSEC.Status, Reason: f.DNSSEC.Reason, Zone: f.DNSSEC.Zone},
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
		ID: f.ID, Level: string(f.Level), What: f.What, Why: f.Why, Fix: f.FullFix(), Record: f.Record.String(), RFC: f.RFC, Points: f.Points,
	}
}

func newDMARC(f facts.DMARC) DMARC {
	return DMARC{
		Status: f.Status, Reason: f.Reason, Record: f.Record, RecordDomain: f.PolicyDomain(),
		OrganizationalDomain: f.OrganizationalDomain, Policy: Word(f.Policy), Applied: Word(f.Applied), Queries: notNull(f.Queries),
		Legacy: Legacy{
			RecordDomain: f.Legacy.PolicyDomain(), OrganizationalDomain: f.Legacy.OrganizationalDomain, Policy: Word(f.Legacy.Policy),
		},
		Destinations: list(f.Destinations, func(d facts.Destination) Destination {
			return Destination{Tag: d.Tag, URI: d.URI, Consent: word(d.Consent)}
		}),
	}
}

func newSPFTerm(t facts.SPFTerm) SPFTerm {
	return SPFTerm{
		Term: t.Term, Target: t.Target, Provider: t.Provider, Cost: t.Cost, Lookups: t.Lookups, Note: t.Note,
		Record: t.Record, Terms: list(t.Terms, newSPFTerm),
	}
}

func newDKIMKey(k facts.DKIMKey) DKIMKey {
	return DKIMKey{
		Selector: k.Selector, From: k.From, Status: k.Status, Reason: k.Reason, Record: k.Record,
		Algorithm: k.Algorithm, Bits: k.Bits, Testing: k.Testing, Aliases: notNull(k.Aliases),
	}
}

// StoredCheck is an entry of a domain's history: a check that had the same result from FirstAt
// to LastAt, and its changes from the previous entry.
type StoredCheck struct {
	ID      *string `json:"id"` // null if DNS has never answered, so that there is no entry
	FirstAt string  `json:"first_at"`
	LastAt  string  `json:"last_at"`
	Check
	Changes []Change `json:"changes"`
}

// NewStoredCheck returns the shape of an entry.
func NewStoredCheck(c facts.StoredCheck) StoredCheck {
	changes := list(c.Changes, newChange)
	slices.SortStableFunc(changes, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	shape := StoredCheck{FirstAt: Time(c.FirstAt), LastAt: Time(c.LastAt), Check: NewCheck(c.Check), Changes: changes}
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
		Kinds: list(c.Parts, PartWord), Changes: changes,
	}
}

// PartWord returns a part of a check as the name of its member.
func PartWord(part facts.Part) string { return word(string(part)) }

// Word is a word of an enumeration, null in JSON if it is absent.
type Word string

// MarshalJSON implements json.Marshaler.
func (w Word) MarshalJSON() ([]byte, error) { return json.Marshal(optionalText(w)) }

// word writes a word of an enumeration as all others.
func word(text string) string { return strings.NewReplacer(" ", "_", "-", "_").Replace(text) }

// Change is one difference between two checks. Path names the member, such as dmarc.record or
// dkim.google.bits. In the SPF tree, only records that terms of both checks refer to are compared,
// once each and independent of their depth: spf.tree.include:_spf.example.com.record. Other
// differences of the tree follow from these and from spf.record.
type Change struct {
	Path   string `json:"path"`
	Before string `json:"before"` // "" if it was added
	After  string `json:"after"`  // "" if it was removed
}

func newChange(c facts.Change) Change {
	switch c.Fact {
	case "dmarc.destinations.{of}.consent", "mx.{of}.status", "mta_sts.fetch":
		c.Before, c.After = word(c.Before), word(c.After)
	}
	return Change{Path: c.Path(), Before: c.Before, After: c.After}
}
