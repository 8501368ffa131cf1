package dmarcd

import (
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Facts is the result of a check without judgement: plain data that can be stored,
// compared and shown. Two checks of an unchanged domain give equal facts, so values that
// count down, such as TTLs, are not included. Texts from DNS are valid UTF-8 and at most
// 4 KiB long.
//
// Statuses are words: those of the protocol, and "inconclusive", with a Reason, if a
// lookup failed.
type Facts struct {
	Domain string
	// Missing is true if the name does not exist in DNS.
	Missing  bool
	DMARC    DMARCFacts
	SPF      SPFFacts
	DKIM     DKIMFacts
	MX       MXFacts
	MTASTS   MTASTSFacts
	TLSRPT   TLSRPTFacts
	BIMI     BIMIFacts
	DANE     DANEFacts
	STARTTLS STARTTLSFacts
	DNSSEC   DNSSECFacts
}

// Problem is a problem of a record: a stable kind of its protocol, and the values for its
// description. The kind determines which fields are set.
type Problem struct {
	Kind string
	// At is the domain, host or selector of the record.
	At string
	// Part is the affected tag, field or term.
	Part string
	// Text is the affected text, Name the other name, Other the other place.
	Text, Name, Other string
	// Count is the actual value and Limit what it is compared with.
	Count, Limit int
	Reason       string
}

// DMARCFacts is the result of policy discovery.
type DMARCFacts struct {
	// Status is ok, none, multiple, unusable or inconclusive, for the domain's own name;
	// Record is what applies.
	Status string
	Reason string
	// Record is the applicable record, usable or not, and RecordDomain its publisher; both
	// are "" if there is none.
	Record, RecordDomain string
	// OwnRecords are the records at the domain's own name, at most 100.
	OwnRecords []string
	// State is how receivers treat Record: ok, or why they do not use it.
	State string
	// Policy is the policy of Record for the domain before the t tag, and Applied after
	// it; Source is its tag. "" if no policy applies.
	Policy, Applied, Source string
	// P, SP and NP are the stated policies of Record, or "".
	P, SP, NP string
	// PSD is y, n or u; Testing is t=y; Percent the value of pct, "" without.
	PSD     string
	Testing bool
	Percent string
	// OrganizationalDomain is "" if it is unknown.
	OrganizationalDomain string
	// Queries are the names queried by the tree walk, in order.
	Queries []string
	// Aliases are the CNAME targets of the domain's own name. Dangling is true if the last
	// of them has no TXT record.
	Aliases  []string
	Dangling bool
	// Misses are texts at the domain's own name that are not DMARC records, with the kind
	// of error; ApexRecords are DMARC records at the wrong name, the domain itself.
	Misses      []Problem
	ApexRecords []string
	// Destinations are the destinations of reports.
	Destinations []DestinationFacts
	// Problems are the problems of Record.
	Problems []Problem
	Legacy   LegacyFacts
	// OrganizationIsSuffix is true if OrganizationalDomain is above the registrable
	// domain, RecordIsSuffix if RecordDomain is.
	OrganizationIsSuffix, RecordIsSuffix bool
}

// LegacyFacts is the result of policy discovery under RFC 7489.
type LegacyFacts struct {
	Status                                     string
	Record, RecordDomain, OrganizationalDomain string
	Policy                                     string
	Percent                                    int
}

// PolicyDomain returns the publisher of the applicable policy, "" if there is none.
func (f DMARCFacts) PolicyDomain() string {
	if f.Policy == "" {
		return ""
	}
	return f.RecordDomain
}

// PolicyDomain returns the publisher of the applicable policy, "" if there is none.
func (f LegacyFacts) PolicyDomain() string {
	if f.Policy == "" {
		return ""
	}
	return f.RecordDomain
}

// DestinationFacts is one destination of reports.
type DestinationFacts struct {
	// Tag is rua or ruf.
	Tag string
	URI string
	// Address is the mail address, "" for other schemes.
	Address, Host string
	// Consent is not needed, authorized, not authorized or unknown; Queried is the name
	// that was queried for it.
	Consent, Queried string
	// Mail is whether the host accepts mail: yes, no or unknown; "" if it was not checked.
	Mail string
}

// SPFFacts is the SPF record and what follows from it.
type SPFFacts struct {
	// Status is ok, none, multiple, permerror or inconclusive.
	Status string
	Reason string
	// Record is "" unless there is exactly one.
	Record string
	// Records holds all SPF records of the domain.
	Records []string
	// Lookups is the total number of lookups, VoidLookups the number of void ones, for
	// IPv4 clients.
	Lookups, VoidLookups int
	// Tree are the terms of the domain's record; of several, those of spf.Merge.
	Tree []SPFTerm
	// Problems contains at most 100 of each kind.
	Problems []Problem
}

// SPFTerm is one term of an SPF record.
type SPFTerm struct {
	Term string
	// Target is the name it refers to, Provider the service of that name.
	Target, Provider string
	// Cost is the number of its lookups including nested ones, Lookups the running total
	// after it.
	Cost, Lookups int
	// Note describes special cases, such as a loop, or is "".
	Note string
	// Record is the record that an include or redirect refers to, Terms its terms.
	Record string
	Terms  []SPFTerm
	// Addresses are the networks of an a or mx term by the addresses of its hosts, sorted:
	// the lowest, at most MaxSPFAddresses. Complete is true if they are all.
	Addresses []netip.Prefix
	Complete  bool
}

// Notes of an include or redirect without exactly one record.
const (
	SPFNoRecord        = "has no SPF record"
	SPFMultipleRecords = "has multiple SPF records"
)

// MaxSPFAddresses limits the stored addresses of an SPF term.
const MaxSPFAddresses = 100

// DKIMFacts is what is known about the DKIM keys. DNS has no list of selectors, so finding
// no key does not mean that there is none.
type DKIMFacts struct {
	// Namespace is exists, missing or unknown. Only missing means that there are
	// no keys.
	Namespace string
	// Wildcard is true if every selector has an answer.
	Wildcard bool
	// Probed is the number of queried selectors.
	Probed int
	// Keys are the selectors that were found, and all those from reports and from the
	// owner.
	Keys []DKIMKey
	// Unanswered is the number of guessed selectors whose lookup failed.
	Unanswered int
	Reason     string
}

// DKIMKey is one selector.
type DKIMKey struct {
	Selector string
	// From is report, declared or probed.
	From string
	// Status is found, revoked, none, multiple, invalid or inconclusive.
	Status    string
	Reason    string
	Record    string
	Algorithm string
	Bits      int
	Testing   bool
	// Aliases are the CNAME targets of the key.
	Aliases  []string
	Problems []Problem
}

// MXFacts are the mail servers of the domain.
type MXFacts struct {
	// Status is ok, none, null (the domain accepts no mail, RFC 7505), implicit (no MX
	// record, but an address) or inconclusive.
	Status string
	Reason string
	// Hosts are ordered by preference, then by name.
	Hosts []MXHost
}

// MXHost is one MX record.
type MXHost struct {
	Name       string
	Preference int
	// Status is ok, no-address, no-such-name, address (an IP address instead of a name),
	// root (a null MX next to others) or inconclusive.
	Status string
	// Addresses are the lowest, at most 20 per family.
	Addresses []string
	Aliases   []string
}

// MTASTSFacts are the MTA-STS record and policy.
type MTASTSFacts struct {
	// Status is ok, none, multiple, invalid or inconclusive, for the record.
	Status     string
	Reason     string
	Record, ID string
	// Fetch is the result of fetching the policy: ok, invalid, bad certificate, redirect,
	// bad status, no host, inconclusive; "" if it was not fetched.
	Fetch       string
	FetchReason string
	// Policy is the text of the policy; Mode, MaxAge and MX are its fields.
	Policy, Mode string
	MaxAge       time.Duration
	MX           []string
	// HTTPStatus is the status of the response, Location the target of a redirect.
	HTTPStatus int
	Location   string
	// Uncovered are MX hosts that no pattern of the policy allows, Unused patterns that
	// match no MX host.
	Uncovered, Unused []string
	// Problems are those of the record, PolicyProblems those of the policy.
	Problems, PolicyProblems []Problem
}

// TLSRPTFacts is the TLS-RPT record.
type TLSRPTFacts struct {
	// Status is ok, none, multiple, invalid or inconclusive.
	Status       string
	Reason       string
	Record       string
	Destinations []string
	Problems     []Problem
}

// BIMIFacts is the BIMI record with its logo and certificate.
type BIMIFacts struct {
	// Status is ok, none, declined, multiple, invalid or inconclusive.
	Status               string
	Reason               string
	Record, RecordDomain string
	Location, Evidence   string
	// Mark is VMC or CMC if there is a mark certificate, Expires its expiry.
	Mark     string
	Expires  time.Time
	Problems []Problem
}

// DANEFacts is the DANE status of the mail servers.
type DANEFacts struct {
	// Status is ok, none, insecure, unusable, mixed or inconclusive.
	Status   string
	Reason   string
	Hosts    []DANEHost
	Problems []Problem
}

// DANEHost is one MX host.
type DANEHost struct {
	Name, Status string
	// Records are the TLSA records in presentation format.
	Records []string
}

// STARTTLSFacts are the certificates of the most preferred mail servers.
type STARTTLSFacts struct {
	// Status is ok, inconclusive (a server does not answer, and no other has a problem), or
	// "" if no server was contacted.
	Status string
	// Silent are the hosts that did not answer. They are not stored.
	Silent []string
	// Pinned are the hosts whose TLSA records name their certificate, whatever its dates.
	Pinned   []string
	Problems []Problem
}

// DNSSECFacts is the DNSSEC status of the domain's zone.
type DNSSECFacts struct {
	// Status is signed (validated by the resolver), unvalidated (signed, but the resolver
	// does not report validation), undelegated (keys without a DS record in the parent
	// zone), broken (a DS record without keys), unsigned or inconclusive.
	Status      string
	Reason      string
	Zone        string
	Nameservers []string
	// Algorithms and Digests are the numbers in the DS records.
	Algorithms, Digests []int
	// NamesNeverMissing is true if the zone reports an unused name as existing.
	NamesNeverMissing bool
}

// inconclusive is the status of a failed lookup.
const inconclusive = "inconclusive"

// Unseen returns the inconclusive parts, by the prefix of their finding ids, and the ids of
// findings whose part is only partly inconclusive. See IsUnseen.
func (f Facts) Unseen() []string {
	var unseen []string
	if f.STARTTLS.Status != "ok" { // also if no server is contacted any more
		unseen = append(unseen, "starttls", "dane.no-match")
	}
	for _, part := range []struct{ name, status string }{
		{"dmarc", f.DMARC.Status},
		{"spf", f.SPF.Status},
		{"mx", f.MX.Status},
		{"mta-sts", f.MTASTS.Status},
		{"mta-sts", f.MTASTS.Fetch},
		{"tls-rpt", f.TLSRPT.Status},
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

// IsUnseen reports whether a finding, by its id, may exist in spite of a check with these
// unseen parts.
func IsUnseen(unseen []string, finding string) bool {
	part, _, _ := strings.Cut(finding, ".")
	return slices.Contains(unseen, part) || slices.Contains(unseen, finding)
}

// Hides reports whether a finding of an earlier check, by its id and text, may exist in spite of
// a check with these facts. A mail server that does not answer hides its own findings only.
func (f Facts) Hides(finding, text string) bool {
	if f.hidesByServer(finding) {
		return slices.ContainsFunc(f.STARTTLS.Silent, func(host string) bool { return strings.Contains(text, host) })
	}
	return IsUnseen(f.Unseen(), finding)
}

// hidesByServer reports whether a finding is about mail servers some of which did not answer.
func (f Facts) hidesByServer(finding string) bool {
	return len(f.STARTTLS.Silent) > 0 && f.DANE.Status != inconclusive && IsUnseen([]string{"starttls", "dane.no-match"}, finding)
}
