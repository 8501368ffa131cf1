package wire

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// StoredCheck is an entry of a domain's history: a check that had the same result from FirstAt
// to LastAt, and its changes from the previous entry.
type StoredCheck struct {
	ID      string `json:"id"`
	FirstAt string `json:"first_at"`
	LastAt  string `json:"last_at"`
	Check
	Changes []Change `json:"changes"`
}

// NewKeptCheck returns the shape of an entry.
func NewKeptCheck(c dmarcd.StoredCheck) StoredCheck {
	changes := list(c.Changes, newChange)
	slices.SortStableFunc(changes, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	return StoredCheck{
		ID: c.ID.String(), FirstAt: Time(c.FirstAt), LastAt: Time(c.LastAt), Check: NewCheck(c.Check), Changes: changes,
	}
}

// Change is one difference between two checks. Path names the member, such as
// dmarc.record or dkim.google.bits. Of the tree of SPF only records are compared
// that terms of both checks lead to, each once and wherever it is in the tree:
// spf.tree.include:_spf.example.com.record. What else is different in the tree
// follows from these and from spf.record.
type Change struct {
	Path   string `json:"path"`
	Before string `json:"before"` // "" where it was not there
	After  string `json:"after"`  // "" where it is not any more
}

func newChange(c dmarcd.Change) Change {
	pattern, ok := paths[c.Fact]
	if !ok {
		pattern = string(c.Fact)
	}
	path := strings.NewReplacer("{of}", c.Of, "{member}", c.Before+c.After).Replace(pattern)
	return Change{Path: path, Before: c.Before, After: c.After}
}

// paths says where in a Check a fact is. {of} stands for the name of what it is a fact
// of, {member} for a member of a list.
var paths = map[dmarcd.FactName]string{
	dmarcd.FactGrade:   "grade",
	dmarcd.FactFinding: "findings.{of}",

	dmarcd.FactDMARCStatus:                     "dmarc.status",
	dmarcd.FactDMARCReason:                     "dmarc.reason",
	dmarcd.FactDMARCRecord:                     "dmarc.record",
	dmarcd.FactDMARCRecordDomain:               "dmarc.record_domain",
	dmarcd.FactDMARCOrganizationalDomain:       "dmarc.organizational_domain",
	dmarcd.FactDMARCPolicy:                     "dmarc.policy",
	dmarcd.FactDMARCApplied:                    "dmarc.applied",
	dmarcd.FactDMARCLegacyRecordDomain:         "dmarc.legacy.record_domain",
	dmarcd.FactDMARCLegacyOrganizationalDomain: "dmarc.legacy.organizational_domain",
	dmarcd.FactDMARCLegacyPolicy:               "dmarc.legacy.policy",
	dmarcd.FactDMARCDestination:                "dmarc.destinations.{of}.uri",
	dmarcd.FactDMARCDestinationTag:             "dmarc.destinations.{of}.tag",
	dmarcd.FactDMARCDestinationConsent:         "dmarc.destinations.{of}.consent",

	dmarcd.FactSPFStatus:      "spf.status",
	dmarcd.FactSPFReason:      "spf.reason",
	dmarcd.FactSPFRecord:      "spf.record",
	dmarcd.FactSPFLookups:     "spf.lookups",
	dmarcd.FactSPFVoidLookups: "spf.void_lookups",
	dmarcd.FactSPFIncluded:    "spf.tree.{of}.record",

	dmarcd.FactDKIMSelector:  "dkim.{of}.selector",
	dmarcd.FactDKIMFrom:      "dkim.{of}.from",
	dmarcd.FactDKIMStatus:    "dkim.{of}.status",
	dmarcd.FactDKIMReason:    "dkim.{of}.reason",
	dmarcd.FactDKIMRecord:    "dkim.{of}.record",
	dmarcd.FactDKIMAlgorithm: "dkim.{of}.algorithm",
	dmarcd.FactDKIMBits:      "dkim.{of}.bits",
	dmarcd.FactDKIMTesting:   "dkim.{of}.testing",
	dmarcd.FactDKIMAlias:     "dkim.{of}.aliases.{member}",

	dmarcd.FactMXHost:       "mx.{of}.host",
	dmarcd.FactMXPreference: "mx.{of}.preference",
	dmarcd.FactMXStatus:     "mx.{of}.status",
	dmarcd.FactMXAddress:    "mx.{of}.addresses.{member}",

	dmarcd.FactMTASTSStatus: "mta_sts.status",
	dmarcd.FactMTASTSReason: "mta_sts.reason",
	dmarcd.FactMTASTSRecord: "mta_sts.record",
	dmarcd.FactMTASTSFetch:  "mta_sts.fetch",
	dmarcd.FactMTASTSMode:   "mta_sts.mode",
	dmarcd.FactMTASTSMaxAge: "mta_sts.max_age",
	dmarcd.FactMTASTSMX:     "mta_sts.mx.{member}",

	dmarcd.FactTLSRPTStatus:      "tls_rpt.status",
	dmarcd.FactTLSRPTReason:      "tls_rpt.reason",
	dmarcd.FactTLSRPTRecord:      "tls_rpt.record",
	dmarcd.FactTLSRPTDestination: "tls_rpt.destinations.{member}",

	dmarcd.FactBIMIStatus:       "bimi.status",
	dmarcd.FactBIMIReason:       "bimi.reason",
	dmarcd.FactBIMIRecord:       "bimi.record",
	dmarcd.FactBIMIRecordDomain: "bimi.record_domain",
	dmarcd.FactBIMILocation:     "bimi.location",
	dmarcd.FactBIMIEvidence:     "bimi.evidence",

	dmarcd.FactDANEStatus:     "dane.status",
	dmarcd.FactDANEReason:     "dane.reason",
	dmarcd.FactDANEHost:       "dane.hosts.{of}.host",
	dmarcd.FactDANEHostStatus: "dane.hosts.{of}.status",
	dmarcd.FactDANERecord:     "dane.hosts.{of}.records.{member}",

	dmarcd.FactDNSSECStatus: "dnssec.status",
	dmarcd.FactDNSSECReason: "dnssec.reason",
	dmarcd.FactDNSSECZone:   "dnssec.zone",
}
