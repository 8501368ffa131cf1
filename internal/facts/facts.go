// Package facts contains what a check found in the DNS of a domain, and how two checks differ. It is
// data without conclusions: package dnscheck collects it and derives the findings.
package facts

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// Facts is the result of a check without conclusions: plain data that can be stored,
// compared and shown. Two checks of an unchanged domain give equal facts, so values that
// count down, such as TTLs, are not included. Texts from DNS are valid UTF-8 and at most
// 4 KiB long.
//
// The tags are the names in the stored document of a check (store/shape): facts with "-" serve
// the findings of the same check only.
//
// Statuses are words: those of the protocol, and "inconclusive", with a Reason, if a
// lookup failed.
type Facts struct {
	Domain string `json:"domain,omitzero"`
	// Missing is true if the name does not exist in DNS.
	Missing  bool     `json:"missing,omitzero"`
	DMARC    DMARC    `json:"dmarc"`
	SPF      SPF      `json:"spf"`
	DKIM     DKIM     `json:"dkim"`
	MX       MX       `json:"mx"`
	MTASTS   MTASTS   `json:"mta_sts"`
	TLSRPT   TLSRPT   `json:"tls_rpt"`
	BIMI     BIMI     `json:"bimi"`
	DANE     DANE     `json:"dane"`
	STARTTLS STARTTLS `json:"starttls"`
	DNSSEC   DNSSEC   `json:"dnssec"`
	// Elsewhere are the names of managed records without a CNAME record to the zone.
	Elsewhere []string `json:"-"`
}

// Problem is a problem of a record: a stable kind of its protocol, and the values for its
// description. The kind determines which fields are set.
type Problem struct {
	Kind string
	// At is the domain, host or selector of the record.
	At string
	// Part is the affected tag, field or term.
	Part string
	// Text is the affected text, Name the other name, Other the other position.
	Text, Name, Other string
	// Count is the actual value, Limit the allowed one.
	Count, Limit int
	Reason       string
}

// DMARC is the result of policy discovery.
type DMARC struct {
	// Status is ok, none, multiple, unusable or inconclusive, for the domain's own name;
	// Record is the record that applies.
	Status string `json:"status,omitzero"`
	Reason string `json:"reason,omitzero"`
	// Record is the applicable record, usable or not, and RecordDomain its publisher; both
	// are "" if there is none.
	Record       string `json:"record,omitzero"`
	RecordDomain string `json:"record_domain,omitzero"`
	// OwnRecords are the records at the domain's own name, at most 100.
	OwnRecords []string `json:"-"`
	// State is how receivers treat Record: ok, or why they do not use it.
	State string `json:"-"`
	// Policy is the policy of Record for the domain before the t tag, and Applied after
	// it; Source is its tag. "" if no policy applies.
	Policy  string `json:"policy,omitzero"`
	Applied string `json:"applied,omitzero"`
	Source  string `json:"-"`
	// P, SP and NP are the stated policies of Record, or "".
	P, SP, NP string `json:"-"`
	// PSD is y, n or u; Testing is t=y; Percent the value of pct, "" without.
	PSD     string `json:"-"`
	Testing bool   `json:"-"`
	Percent string `json:"-"`
	// OrganizationalDomain is "" if it is unknown.
	OrganizationalDomain string `json:"organizational_domain,omitzero"`
	// Queries are the names queried by the tree walk, in order.
	Queries []string `json:"queries,omitempty"`
	// Aliases are the CNAME targets of the domain's own name. Dangling is true if the last
	// of them has no TXT record.
	Aliases  []string `json:"-"`
	Dangling bool     `json:"-"`
	// Misses are texts at the domain's own name that are not DMARC records, with the kind
	// of error; ApexRecords are DMARC records at the wrong name, the domain itself.
	Misses      []Problem `json:"-"`
	ApexRecords []string  `json:"-"`
	// Destinations are the destinations of reports.
	Destinations []Destination `json:"destinations,omitempty"`
	// Problems are the problems of Record.
	Problems []Problem `json:"-"`
	Legacy   Legacy    `json:"legacy,omitzero"`
	// OrganizationIsSuffix is true if OrganizationalDomain is above the registrable
	// domain, RecordIsSuffix if RecordDomain is.
	OrganizationIsSuffix, RecordIsSuffix bool `json:"-"`
}

// Legacy is the result of policy discovery under RFC 7489.
type Legacy struct {
	Status               string `json:"-"`
	RecordDomain         string `json:"record_domain,omitzero"`
	OrganizationalDomain string `json:"organizational_domain,omitzero"`
	Policy               string `json:"policy,omitzero"`
}

// PolicyDomain returns the publisher of the applicable policy, "" if there is none.
func (f DMARC) PolicyDomain() string {
	if f.Policy == "" {
		return ""
	}
	return f.RecordDomain
}

// PolicyDomain returns the publisher of the applicable policy, "" if there is none.
func (f Legacy) PolicyDomain() string {
	if f.Policy == "" {
		return ""
	}
	return f.RecordDomain
}

// Destination is one destination of reports.
type Destination struct {
	// Tag is rua or ruf.
	Tag string `json:"tag"`
	URI string `json:"uri"`
	// Address is the mail address, "" for other schemes.
	Address, Host string `json:"-"`
	// Consent is not needed, authorized, not authorized or unknown; Queried is the name
	// that was queried for it.
	Consent string `json:"consent,omitzero"`
	Queried string `json:"-"`
	// Mail is whether the host accepts mail: yes, no or unknown; "" if it was not checked.
	Mail string `json:"-"`
}

// SPF is the SPF record with its evaluation.
type SPF struct {
	// Status is ok, none, multiple, permerror or inconclusive.
	Status string `json:"status,omitzero"`
	Reason string `json:"reason,omitzero"`
	// Record is "" unless there is exactly one.
	Record string `json:"record,omitzero"`
	// Records holds all SPF records of the domain; a single one is not stored twice.
	Records []string `json:"records,omitempty"`
	// Lookups is the total number of lookups, VoidLookups the number of void ones, for
	// IPv4 clients.
	Lookups     int `json:"lookups,omitzero"`
	VoidLookups int `json:"void_lookups,omitzero"`
	// Tree has the terms of the domain's record; if there are several, of the result of spf.Merge.
	Tree []SPFTerm `json:"terms,omitempty"`
	// Problems contains at most 100 of each kind.
	Problems []Problem `json:"-"`
}

// SPFTerm is one term of an SPF record.
type SPFTerm struct {
	Term string `json:"term"`
	// Target is the name it refers to, Provider the service of that name.
	Target   string `json:"target,omitzero"`
	Provider string `json:"provider,omitzero"`
	// Cost is the number of its lookups including nested ones, Lookups the running total
	// after it.
	Cost    int `json:"cost,omitzero"`
	Lookups int `json:"lookups,omitzero"`
	// Note describes special cases, such as a loop, or is "".
	Note string `json:"note,omitzero"`
	// Record is the record that an include or redirect refers to, Terms its terms.
	Record string    `json:"record,omitzero"`
	Terms  []SPFTerm `json:"terms,omitempty"`
	// Addresses are the networks of an a or mx term by the addresses of its hosts, sorted:
	// the lowest, at most MaxSPFAddresses. Complete is true if they are all.
	Addresses []netip.Prefix `json:"addresses,omitempty"`
	Complete  bool           `json:"complete,omitzero"`
}

// Notes of an include or redirect without exactly one record.
const (
	SPFNoRecord        = "has no SPF record"
	SPFMultipleRecords = "has multiple SPF records"
)

// MaxSPFAddresses limits the stored addresses of an SPF term.
const MaxSPFAddresses = 100

// DKIM has the DKIM keys that were found. DNS has no list of selectors, so finding
// no key does not mean that there is none.
type DKIM struct {
	// Namespace is exists, missing or unknown. Only missing means that there are
	// no keys.
	Namespace string `json:"-"`
	// Wildcard is true if every selector has an answer.
	Wildcard bool `json:"-"`
	// Probed is the number of queried selectors.
	Probed int `json:"-"`
	// Keys are the selectors that were found, and all those from reports and from the
	// owner.
	Keys []DKIMKey `json:"keys,omitempty"`
	// Unanswered is the number of guessed selectors whose lookup failed.
	Unanswered int    `json:"-"`
	Reason     string `json:"-"`
}

// DKIMKey is one selector.
type DKIMKey struct {
	Selector string `json:"selector"`
	// From is report, declared or probed.
	From string `json:"from,omitzero"`
	// Status is found, revoked, none, multiple, invalid or inconclusive.
	Status    string `json:"status,omitzero"`
	Reason    string `json:"reason,omitzero"`
	Record    string `json:"record,omitzero"`
	Algorithm string `json:"algorithm,omitzero"`
	Bits      int    `json:"bits,omitzero"`
	Testing   bool   `json:"testing,omitzero"`
	// Aliases are the CNAME targets of the key.
	Aliases  []string  `json:"aliases,omitempty"`
	Problems []Problem `json:"-"`
}

// MX are the mail servers of the domain.
type MX struct {
	// Status is ok, none, null (the domain accepts no mail, RFC 7505), implicit (no MX
	// record, but an address) or inconclusive.
	Status string `json:"status,omitzero"`
	Reason string `json:"reason,omitzero"`
	// Hosts are ordered by preference, then by name.
	Hosts []MXHost `json:"hosts,omitempty"`
}

// MXHost is one MX record.
type MXHost struct {
	Name       string `json:"host"`
	Preference int    `json:"preference,omitzero"`
	// Status is ok, no-address, no-such-name, address (an IP address instead of a name),
	// root (a null MX next to others) or inconclusive.
	Status string `json:"status,omitzero"`
	// Addresses are the lowest, at most 20 per family.
	Addresses []string `json:"addresses,omitempty"`
	Aliases   []string `json:"-"`
}

// MTASTS are the MTA-STS record and policy.
type MTASTS struct {
	// Status is ok, none, multiple, invalid or inconclusive, for the record.
	Status string `json:"status,omitzero"`
	Reason string `json:"reason,omitzero"`
	Record string `json:"record,omitzero"`
	// Fetch is the result of fetching the policy: ok, invalid, bad certificate, redirect,
	// bad status, no host, inconclusive; "" if it was not fetched.
	Fetch       string `json:"fetch,omitzero"`
	FetchReason string `json:"-"`
	// Mode, MaxAge (in seconds) and MX are fields of the policy.
	Mode   string   `json:"mode,omitzero"`
	MaxAge int64    `json:"max_age,omitzero"`
	MX     []string `json:"mx,omitempty"`
	// HTTPStatus is the status of the response, Location the target of a redirect.
	HTTPStatus int    `json:"-"`
	Location   string `json:"-"`
	// Uncovered are MX hosts that no pattern of the policy allows, Unused patterns that
	// match no MX host.
	Uncovered, Unused []string `json:"-"`
	// Problems are the problems of the record, PolicyProblems those of the policy.
	Problems, PolicyProblems []Problem `json:"-"`
}

// TLSRPT is the TLS-RPT record.
type TLSRPT struct {
	// Status is ok, none, multiple, invalid or inconclusive.
	Status       string    `json:"status,omitzero"`
	Reason       string    `json:"reason,omitzero"`
	Record       string    `json:"record,omitzero"`
	Destinations []string  `json:"destinations,omitempty"`
	Problems     []Problem `json:"-"`
}

// BIMI is the BIMI record with its logo and certificate.
type BIMI struct {
	// Status is ok, none, declined, multiple, invalid or inconclusive.
	Status       string `json:"status,omitzero"`
	Reason       string `json:"reason,omitzero"`
	Record       string `json:"record,omitzero"`
	RecordDomain string `json:"record_domain,omitzero"`
	Location     string `json:"location,omitzero"`
	Evidence     string `json:"evidence,omitzero"`

	Problems []Problem `json:"-"`
}

// DANE is the DANE status of the mail servers.
type DANE struct {
	// Status is ok, none, insecure, unusable, mixed or inconclusive.
	Status   string     `json:"status,omitzero"`
	Reason   string     `json:"reason,omitzero"`
	Hosts    []DANEHost `json:"hosts,omitempty"`
	Problems []Problem  `json:"-"`
}

// DANEHost is one MX host.
type DANEHost struct {
	Name   string `json:"host"`
	Status string `json:"status,omitzero"`
	// Records are the TLSA records in presentation format.
	Records []string `json:"records,omitempty"`
}

// STARTTLS are the certificates of the most preferred mail servers.
type STARTTLS struct {
	// Status is ok, inconclusive (a server does not answer, and no other has a problem), or
	// "" if no server was contacted.
	Status string `json:"status,omitzero"`
	// Silent are the hosts that did not answer.
	Silent []string `json:"-"`
	// Pinned are the hosts whose TLSA records name their certificate, whatever its dates.
	Pinned   []string  `json:"-"`
	Problems []Problem `json:"-"`
}

// DNSSEC is the DNSSEC status of the domain's zone.
type DNSSEC struct {
	// Status is signed (validated by the resolver), unvalidated (signed, but the resolver
	// does not report validation), undelegated (keys without a DS record in the parent
	// zone), broken (a DS record without keys), unsigned or inconclusive.
	Status      string   `json:"status,omitzero"`
	Reason      string   `json:"reason,omitzero"`
	Zone        string   `json:"zone,omitzero"`
	Nameservers []string `json:"-"`
	// Algorithms and Digests are the numbers in the DS records.
	Algorithms, Digests []int `json:"-"`
	// NamesNeverMissing is true if the zone reports an unused name as existing.
	NamesNeverMissing bool `json:"-"`
}

// inconclusive is the status of a failed lookup.
const inconclusive = "inconclusive"

// Unseen returns the inconclusive parts, by the prefix of their finding ids, and the ids of
// findings whose part is only partly inconclusive..
func (f Facts) Unseen() []string {
	var unseen []string
	if f.STARTTLS.Status != "ok" { // also if no server is contacted any more
		unseen = append(unseen, byServer...)
	}
	for _, part := range []struct{ name, status string }{
		{"dmarc", f.DMARC.Status},
		{"spf", f.SPF.Status},
		{"mx", f.MX.Status},
		{"mta_sts", f.MTASTS.Status},
		{"mta_sts", f.MTASTS.Fetch},
		{"tls_rpt", f.TLSRPT.Status},
		{"bimi", f.BIMI.Status},
		{"dane", f.DANE.Status},
		{"dnssec", f.DNSSEC.Status},
	} {
		if part.status == inconclusive {
			unseen = append(unseen, part.name)
		}
	}
	for _, key := range f.DKIM.Keys {
		if key.Status == inconclusive {
			return append(unseen, "dkim")
		}
	}
	return unseen
}

// isUnseen reports whether a finding, by its id, may exist in spite of a check with these
// unseen parts.
func isUnseen(unseen []string, finding string) bool {
	part, _, _ := strings.Cut(finding, ".")
	return slices.Contains(unseen, part) || slices.Contains(unseen, finding)
}

// Hides reports whether a finding of an earlier check may exist in spite of a check with these
// facts. A mail server that does not answer hides its own findings only.
func (f Facts) Hides(finding dmarcd.Finding) bool {
	if f.hidesByServer(finding.ID) {
		return slices.Contains(f.STARTTLS.Silent, finding.Host)
	}
	return isUnseen(f.Unseen(), finding.ID)
}

// hidesByServer reports whether a finding is about mail servers some of which did not answer.
func (f Facts) hidesByServer(finding string) bool {
	return len(f.STARTTLS.Silent) > 0 && f.DANE.Status != inconclusive && OfServer(finding)
}

// byServer are the findings about the certificates of mail servers, as in Facts.Unseen.
var byServer = []string{"starttls", "dane.no_match"}

// OfServer reports whether a finding, by its id, is about the certificate of a mail server.
func OfServer(finding string) bool { return isUnseen(byServer, finding) }
