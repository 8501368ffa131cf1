package shape

import (
	"net/netip"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
)

// checkV1 is the result of a full check: the grade, the findings, and of the facts those
// that are shown or compared. What a domain does not have is left out.
type checkV1 struct {
	V        int         `json:"v"`
	Domain   string      `json:"domain"`
	Missing  bool        `json:"missing,omitempty"`
	Grade    string      `json:"grade,omitempty"`
	DMARC    dmarcV1     `json:"dmarc"`
	SPF      spfV1       `json:"spf"`
	DKIM     []dkimKeyV1 `json:"dkim,omitempty"`
	MX       mxV1        `json:"mx"`
	MTASTS   mtaSTSV1    `json:"mta_sts"`
	TLSRPT   tlsRPTV1    `json:"tls_rpt"`
	BIMI     bimiV1      `json:"bimi"`
	DANE     daneV1      `json:"dane"`
	STARTTLS string      `json:"starttls,omitempty"` // the status
	DNSSEC   dnssecV1    `json:"dnssec"`
	Findings []findingV1 `json:"findings,omitempty"`
	// Next is the number of the finding to fix next, from 1; 0 for none.
	Next int `json:"next,omitempty"`
}

type dmarcV1 struct {
	Status               string          `json:"status,omitempty"`
	Reason               string          `json:"reason,omitempty"`
	Record               string          `json:"record,omitempty"`
	RecordDomain         string          `json:"record_domain,omitempty"`
	OrganizationalDomain string          `json:"organizational_domain,omitempty"`
	Policy               string          `json:"policy,omitempty"`
	Applied              string          `json:"applied,omitempty"`
	Queries              []string        `json:"queries,omitempty"`
	Legacy               legacyV1        `json:"legacy"`
	Destinations         []destinationV1 `json:"destinations,omitempty"`
}

type legacyV1 struct {
	RecordDomain         string `json:"record_domain,omitempty"`
	OrganizationalDomain string `json:"organizational_domain,omitempty"`
	Policy               string `json:"policy,omitempty"`
}

type destinationV1 struct {
	Tag     string `json:"tag"`
	URI     string `json:"uri"`
	Consent string `json:"consent,omitempty"`
}

type spfV1 struct {
	Status      string      `json:"status,omitempty"`
	Reason      string      `json:"reason,omitempty"`
	Record      string      `json:"record,omitempty"`
	Records     []string    `json:"records,omitempty"` // if there are several
	Lookups     int         `json:"lookups,omitempty"`
	VoidLookups int         `json:"void_lookups,omitempty"`
	Terms       []spfTermV1 `json:"terms,omitempty"`
}

type spfTermV1 struct {
	Term     string      `json:"term"`
	Target   string      `json:"target,omitempty"`
	Provider string      `json:"provider,omitempty"`
	Cost     int         `json:"cost,omitempty"`
	Lookups  int         `json:"lookups,omitempty"`
	Note     string      `json:"note,omitempty"`
	Record   string      `json:"record,omitempty"`
	Terms    []spfTermV1 `json:"terms,omitempty"`
	// Earlier documents lack the addresses, which are then not complete.
	Addresses []netip.Prefix `json:"addresses,omitempty"`
	Complete  bool           `json:"complete,omitempty"`
}

type dkimKeyV1 struct {
	Selector  string   `json:"selector"`
	From      string   `json:"from,omitempty"`
	Status    string   `json:"status,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	Record    string   `json:"record,omitempty"`
	Algorithm string   `json:"algorithm,omitempty"`
	Bits      int      `json:"bits,omitempty"`
	Testing   bool     `json:"testing,omitempty"`
	Aliases   []string `json:"aliases,omitempty"`
}

type mxV1 struct {
	Status string     `json:"status,omitempty"`
	Reason string     `json:"reason,omitempty"`
	Hosts  []mxHostV1 `json:"hosts,omitempty"`
}

type mxHostV1 struct {
	Host       string   `json:"host"`
	Preference int      `json:"preference,omitempty"`
	Status     string   `json:"status,omitempty"`
	Addresses  []string `json:"addresses,omitempty"`
}

type mtaSTSV1 struct {
	Status string   `json:"status,omitempty"`
	Reason string   `json:"reason,omitempty"`
	Record string   `json:"record,omitempty"`
	Fetch  string   `json:"fetch,omitempty"`
	Mode   string   `json:"mode,omitempty"`
	MaxAge int64    `json:"max_age,omitempty"` // seconds
	MX     []string `json:"mx,omitempty"`
}

type tlsRPTV1 struct {
	Status       string   `json:"status,omitempty"`
	Reason       string   `json:"reason,omitempty"`
	Record       string   `json:"record,omitempty"`
	Destinations []string `json:"destinations,omitempty"`
}

type bimiV1 struct {
	Status       string `json:"status,omitempty"`
	Reason       string `json:"reason,omitempty"`
	Record       string `json:"record,omitempty"`
	RecordDomain string `json:"record_domain,omitempty"`
	Location     string `json:"location,omitempty"`
	Evidence     string `json:"evidence,omitempty"`
}

type daneV1 struct {
	Status string       `json:"status,omitempty"`
	Reason string       `json:"reason,omitempty"`
	Hosts  []daneHostV1 `json:"hosts,omitempty"`
}

type daneHostV1 struct {
	Host    string   `json:"host"`
	Status  string   `json:"status,omitempty"`
	Records []string `json:"records,omitempty"`
}

type dnssecV1 struct {
	Status string `json:"status,omitempty"`
	Reason string `json:"reason,omitempty"`
	Zone   string `json:"zone,omitempty"`
}

type findingV1 struct {
	ID     string `json:"id"`
	Level  string `json:"level"`
	What   string `json:"what,omitempty"`
	Why    string `json:"why,omitempty"`
	Fix    string `json:"fix,omitempty"`
	Record string `json:"record,omitempty"`
	RFC    string `json:"rfc,omitempty"`
	Points int    `json:"points,omitempty"`
}

// EncodeCheck returns the document of a full check: one with facts.
func EncodeCheck(c dmarcd.Check) string {
	f := c.Facts
	s := checkV1{
		V: 1, Domain: f.Domain, Missing: f.Missing, Grade: c.Grade,
		DMARC: newDMARCV1(f.DMARC),
		SPF: spfV1{
			Status: f.SPF.Status, Reason: f.SPF.Reason, Record: f.SPF.Record, Records: several(f.SPF.Records),
			Lookups: f.SPF.Lookups, VoidLookups: f.SPF.VoidLookups, Terms: convert(f.SPF.Tree, newSPFTermV1),
		},
		DKIM: convert(f.DKIM.Keys, newDKIMKeyV1),
		MX: mxV1{Status: f.MX.Status, Reason: f.MX.Reason, Hosts: convert(f.MX.Hosts, func(h dmarcd.MXHost) mxHostV1 {
			return mxHostV1{Host: h.Name, Preference: h.Preference, Status: h.Status, Addresses: h.Addresses}
		})},
		MTASTS: mtaSTSV1{
			Status: f.MTASTS.Status, Reason: f.MTASTS.Reason, Record: f.MTASTS.Record, Fetch: f.MTASTS.Fetch,
			Mode: f.MTASTS.Mode, MaxAge: int64(f.MTASTS.MaxAge / time.Second), MX: f.MTASTS.MX,
		},
		TLSRPT: tlsRPTV1{
			Status: f.TLSRPT.Status, Reason: f.TLSRPT.Reason, Record: f.TLSRPT.Record, Destinations: f.TLSRPT.Destinations,
		},
		BIMI: bimiV1{
			Status: f.BIMI.Status, Reason: f.BIMI.Reason, Record: f.BIMI.Record, RecordDomain: f.BIMI.RecordDomain,
			Location: f.BIMI.Location, Evidence: f.BIMI.Evidence,
		},
		DANE: daneV1{Status: f.DANE.Status, Reason: f.DANE.Reason, Hosts: convert(f.DANE.Hosts, func(h dmarcd.DANEHost) daneHostV1 {
			return daneHostV1{Host: h.Name, Status: h.Status, Records: h.Records}
		})},
		STARTTLS: f.STARTTLS.Status,
		DNSSEC:   dnssecV1{Status: f.DNSSEC.Status, Reason: f.DNSSEC.Reason, Zone: f.DNSSEC.Zone},
		Findings: convert(c.Findings, func(f dmarcd.Finding) findingV1 {
			return findingV1{ID: f.ID, Level: string(f.Level), What: f.What, Why: f.Why, Fix: f.Fix, Record: f.Record, RFC: f.RFC, Points: f.Points}
		}),
	}
	if c.Next != nil {
		s.Next = slices.Index(c.Findings, *c.Next) + 1
	}
	return encode(s)
}

func newDMARCV1(f dmarcd.DMARCFacts) dmarcV1 {
	return dmarcV1{
		Status: f.Status, Reason: f.Reason, Record: f.Record, RecordDomain: f.RecordDomain,
		OrganizationalDomain: f.OrganizationalDomain, Policy: f.Policy, Applied: f.Applied, Queries: f.Queries,
		Legacy: legacyV1{
			RecordDomain: f.Legacy.RecordDomain, OrganizationalDomain: f.Legacy.OrganizationalDomain, Policy: f.Legacy.Policy,
		},
		Destinations: convert(f.Destinations, func(d dmarcd.DestinationFacts) destinationV1 {
			return destinationV1{Tag: d.Tag, URI: d.URI, Consent: d.Consent}
		}),
	}
}

// several returns the records if there is more than one: a single one is stored as such.
func several(records []string) []string {
	if len(records) < 2 {
		return nil
	}
	return records
}

func newSPFTermV1(t dmarcd.SPFTerm) spfTermV1 {
	return spfTermV1{
		Term: t.Term, Target: t.Target, Provider: t.Provider, Cost: t.Cost, Lookups: t.Lookups, Note: t.Note,
		Record: t.Record, Terms: convert(t.Terms, newSPFTermV1), Addresses: t.Addresses, Complete: t.Complete,
	}
}

func newDKIMKeyV1(k dmarcd.DKIMKey) dkimKeyV1 {
	return dkimKeyV1{
		Selector: k.Selector, From: k.From, Status: k.Status, Reason: k.Reason, Record: k.Record,
		Algorithm: k.Algorithm, Bits: k.Bits, Testing: k.Testing, Aliases: k.Aliases,
	}
}

// DecodeCheck reads what EncodeCheck of this or an earlier version returned. Of a check
// the grade, the findings and the facts that are stored are set.
func DecodeCheck(document string) (dmarcd.Check, error) {
	return checkVersions().decode("check", document)
}

func checkVersions() decoders[dmarcd.Check] { return decoders[dmarcd.Check]{as[checkV1]()} }

func (s checkV1) value() dmarcd.Check {
	check := dmarcd.Check{
		Grade: s.Grade,
		Facts: &dmarcd.Facts{
			Domain: s.Domain, Missing: s.Missing,
			DMARC: s.DMARC.facts(),
			SPF: dmarcd.SPFFacts{
				Status: s.SPF.Status, Reason: s.SPF.Reason, Record: s.SPF.Record, Records: s.SPF.Records,
				Lookups: s.SPF.Lookups, VoidLookups: s.SPF.VoidLookups, Tree: convert(s.SPF.Terms, spfTermV1.term),
			},
			DKIM: dmarcd.DKIMFacts{Keys: convert(s.DKIM, dkimKeyV1.key)},
			MX: dmarcd.MXFacts{Status: s.MX.Status, Reason: s.MX.Reason, Hosts: convert(s.MX.Hosts, func(h mxHostV1) dmarcd.MXHost {
				return dmarcd.MXHost{Name: h.Host, Preference: h.Preference, Status: h.Status, Addresses: h.Addresses}
			})},
			MTASTS: dmarcd.MTASTSFacts{
				Status: s.MTASTS.Status, Reason: s.MTASTS.Reason, Record: s.MTASTS.Record, Fetch: s.MTASTS.Fetch,
				Mode: s.MTASTS.Mode, MaxAge: time.Duration(s.MTASTS.MaxAge) * time.Second, MX: s.MTASTS.MX,
			},
			TLSRPT: dmarcd.TLSRPTFacts{
				Status: s.TLSRPT.Status, Reason: s.TLSRPT.Reason, Record: s.TLSRPT.Record, Destinations: s.TLSRPT.Destinations,
			},
			BIMI: dmarcd.BIMIFacts{
				Status: s.BIMI.Status, Reason: s.BIMI.Reason, Record: s.BIMI.Record, RecordDomain: s.BIMI.RecordDomain,
				Location: s.BIMI.Location, Evidence: s.BIMI.Evidence,
			},
			DANE: dmarcd.DANEFacts{Status: s.DANE.Status, Reason: s.DANE.Reason, Hosts: convert(s.DANE.Hosts, func(h daneHostV1) dmarcd.DANEHost {
				return dmarcd.DANEHost{Name: h.Host, Status: h.Status, Records: h.Records}
			})},
			STARTTLS: dmarcd.STARTTLSFacts{Status: s.STARTTLS},
			DNSSEC:   dmarcd.DNSSECFacts{Status: s.DNSSEC.Status, Reason: s.DNSSEC.Reason, Zone: s.DNSSEC.Zone},
		},
		Findings: convert(s.Findings, func(f findingV1) dmarcd.Finding {
			return dmarcd.Finding{
				ID: f.ID, Level: dmarcd.Level(f.Level), What: f.What, Why: f.Why, Fix: f.Fix, Record: f.Record, RFC: f.RFC, Points: f.Points,
			}
		}),
	}
	if s.Next > 0 && s.Next <= len(check.Findings) {
		check.Next = &check.Findings[s.Next-1]
	}
	return check
}

func (s dmarcV1) facts() dmarcd.DMARCFacts {
	return dmarcd.DMARCFacts{
		Status: s.Status, Reason: s.Reason, Record: s.Record, RecordDomain: s.RecordDomain,
		OrganizationalDomain: s.OrganizationalDomain, Policy: s.Policy, Applied: s.Applied, Queries: s.Queries,
		Legacy: dmarcd.LegacyFacts{
			RecordDomain: s.Legacy.RecordDomain, OrganizationalDomain: s.Legacy.OrganizationalDomain, Policy: s.Legacy.Policy,
		},
		Destinations: convert(s.Destinations, func(d destinationV1) dmarcd.DestinationFacts {
			return dmarcd.DestinationFacts{Tag: d.Tag, URI: d.URI, Consent: d.Consent}
		}),
	}
}

func (s spfTermV1) term() dmarcd.SPFTerm {
	return dmarcd.SPFTerm{
		Term: s.Term, Target: s.Target, Provider: s.Provider, Cost: s.Cost, Lookups: s.Lookups, Note: s.Note,
		Record: s.Record, Terms: convert(s.Terms, spfTermV1.term), Addresses: s.Addresses, Complete: s.Complete,
	}
}

func (s dkimKeyV1) key() dmarcd.DKIMKey {
	return dmarcd.DKIMKey{
		Selector: s.Selector, From: s.From, Status: s.Status, Reason: s.Reason, Record: s.Record,
		Algorithm: s.Algorithm, Bits: s.Bits, Testing: s.Testing, Aliases: s.Aliases,
	}
}
