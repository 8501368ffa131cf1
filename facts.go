package dmarcd

import "time"

// Facts is what a check saw, without any judgement: plain data that can be
// stored, compared and shown. Two looks at a domain that did not change give
// equal facts, so nothing that counts down, such as a TTL, is in them. Texts from
// the DNS are valid UTF-8 and at most 64 KiB long.
//
// Statuses are words: those of the protocol where it has some, and everywhere
// "inconclusive" where nobody could tell, with the Reason in words.
type Facts struct {
	Domain string
	// Missing tells that the DNS knows no such name.
	Missing bool
	DMARC   DMARCFacts
	SPF     SPFFacts
	DKIM    DKIMFacts
	MX      MXFacts
	MTASTS  MTASTSFacts
	TLSRPT  TLSRPTFacts
	BIMI    BIMIFacts
	DANE    DANEFacts
	DNSSEC  DNSSECFacts
}

// Problem is something that a protocol says about a record: a kind, which is a
// stable word of that protocol, and what is needed to put it into words. Which of
// the fields are set depends on the kind.
type Problem struct {
	Kind string
	// At is the domain, host or selector whose record it is about.
	At string
	// Part is the tag, field or term concerned.
	Part string
	// Text is the text concerned, Name the other name, Other the other place.
	Text, Name, Other string
	// Count is what was found and Limit what it is compared with.
	Count, Limit int
	Reason       string
}

// DMARCFacts is what receivers find when they look for the policy.
type DMARCFacts struct {
	// Status is ok, none, multiple, unusable or inconclusive, for the domain's
	// own name; see Record for what applies.
	Status string
	Reason string
	// Record is the record that applies, usable or not, and RecordDomain who
	// publishes it; both are "" where there is none.
	Record, RecordDomain string
	// OwnRecords holds the records at the domain's own name, at most 100.
	OwnRecords []string
	// State tells what receivers make of Record: ok, or in words why not.
	State string
	// Policy is what Record asks for the domain, before the t tag, and Applied
	// after it; Source is the tag it comes from. "" where no policy applies.
	Policy, Applied, Source string
	// P, SP and NP are the literal policies of Record, "" where not stated.
	P, SP, NP string
	// PSD is y, n or u; Testing is t=y; Percent the value of pct, "" without.
	PSD     string
	Testing bool
	Percent string
	// OrganizationalDomain is "" where it could not be found out.
	OrganizationalDomain string
	// Queries holds the names that the tree walk asked for, in order.
	Queries []string
	// Aliases holds the CNAME targets behind the domain's own name. Dangling
	// tells that the last of them has no TXT record.
	Aliases  []string
	Dangling bool
	// Misses holds texts at the domain's own name that are no DMARC record, with
	// the kind of mistake, and ApexRecords DMARC records in the wrong place: at
	// the domain itself.
	Misses      []Problem
	ApexRecords []string
	// Destinations holds where reports go.
	Destinations []DestinationFacts
	// Problems holds what is wrong with Record.
	Problems []Problem
	Legacy   LegacyFacts
	// OrganizationIsSuffix tells that OrganizationalDomain lies above the domain
	// that can be registered, and RecordIsSuffix the same of RecordDomain.
	OrganizationIsSuffix, RecordIsSuffix bool
}

// LegacyFacts is what receivers find that still follow RFC 7489.
type LegacyFacts struct {
	Status                                     string
	Record, RecordDomain, OrganizationalDomain string
	Policy                                     string
	Percent                                    int
}

// PolicyDomain returns who publishes the policy that applies, "" where none does.
func (f DMARCFacts) PolicyDomain() string {
	if f.Policy == "" {
		return ""
	}
	return f.RecordDomain
}

// PolicyDomain returns who publishes the policy that applies, "" where none does.
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
	// Consent is not needed, authorized, not authorized or unknown; Queried is
	// the name at which it was looked for.
	Consent, Queried string
	// Mail tells whether the host takes mail: yes, no or unknown; "" where it
	// was not asked.
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
	// Lookups is how many lookups the records need in all, VoidLookups how many
	// of them find nothing, for clients of IPv4.
	Lookups, VoidLookups int
	// Tree holds the terms of the domain's record.
	Tree     []SPFTerm
	Problems []Problem
}

// SPFTerm is one term of an SPF record.
type SPFTerm struct {
	Term string
	// Target is the name that it leads to, Provider the service behind it.
	Target, Provider string
	// Cost is how many lookups it adds with all below it, Lookups the running
	// total behind it.
	Cost, Lookups int
	// Note says in words what is special, such as a loop; "" if nothing is.
	Note string
	// Record is the record that an include or redirect leads to, Terms its terms.
	Record string
	Terms  []SPFTerm
}

// DKIMFacts is what is known of the DKIM keys. Nothing lists the selectors of a
// domain, so no key found does not mean that there is none.
type DKIMFacts struct {
	// Namespace is exists, missing or unknown. Only missing means that there are
	// no keys.
	Namespace string
	// Wildcard tells that every selector has an answer.
	Wildcard bool
	// Probed is how many selectors were asked for.
	Probed int
	// Keys holds the selectors with something to tell: those that were found, and
	// those from reports and from the owner in any case.
	Keys []DKIMKey
	// Unanswered is how many guessed selectors nobody could tell about.
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
	// Aliases holds the CNAME targets that lead to the key.
	Aliases  []string
	Problems []Problem
}

// MXFacts is where mail to the domain goes.
type MXFacts struct {
	// Status is ok, none, null (the domain takes no mail, RFC 7505), implicit
	// (no MX record, but an address that mail goes to) or inconclusive.
	Status string
	Reason string
	// Hosts is in the order of preference and then of names.
	Hosts []MXHost
}

// MXHost is one MX record.
type MXHost struct {
	Name       string
	Preference int
	// Status is ok, no-address, no-such-name, address (an IP address in the place
	// of a name), root (a null MX beside others) or inconclusive.
	Status    string
	Addresses []string
	Aliases   []string
}

// MTASTSFacts is the MTA-STS record and the policy that it announces.
type MTASTSFacts struct {
	// Status is ok, none, multiple, invalid or inconclusive, for the record.
	Status     string
	Reason     string
	Record, ID string
	// Fetch is what fetching the policy came to: ok, invalid, bad certificate,
	// redirect, bad status, no host, inconclusive; "" where it was not fetched.
	Fetch       string
	FetchReason string
	// Policy is the text of the policy, Mode and MaxAge and MX what it says.
	Policy, Mode string
	MaxAge       time.Duration
	MX           []string
	// HTTPStatus is the status of the answer, Location where a redirect leads.
	HTTPStatus int
	Location   string
	// Uncovered holds MX hosts that no pattern of the policy allows, Unused the
	// patterns that no MX host matches.
	Uncovered, Unused []string
	// Problems are those of the record, PolicyProblems those of the policy.
	Problems, PolicyProblems []Problem
}

// TLSRPTFacts is the record that asks for TLS reports.
type TLSRPTFacts struct {
	// Status is ok, none, multiple, invalid or inconclusive.
	Status       string
	Reason       string
	Record       string
	Destinations []string
	Problems     []Problem
}

// BIMIFacts is the record of the logo and what it leads to.
type BIMIFacts struct {
	// Status is ok, none, declined, multiple, invalid or inconclusive.
	Status               string
	Reason               string
	Record, RecordDomain string
	Location, Evidence   string
	// Mark is VMC or CMC where there is a mark certificate, Expires its end.
	Mark     string
	Expires  time.Time
	Problems []Problem
}

// DANEFacts is how mail servers can be authenticated by DNSSEC.
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
	// Records holds the TLSA records in their presentation form.
	Records []string
}

// DNSSECFacts is whether the zone of the domain is signed.
type DNSSECFacts struct {
	// Status is signed (validated by the resolver), unvalidated (signed, but the
	// resolver does not say that it validated), undelegated (keys without a DS
	// record at the parent), broken (a DS record without keys), unsigned or
	// inconclusive.
	Status string
	Reason string
	// Zone is the zone that the domain is in.
	Zone        string
	Nameservers []string
	// Algorithms and Digests are the numbers in the DS records.
	Algorithms, Digests []int
	// NamesNeverMissing tells that the zone says of a name that nobody made that
	// it exists.
	NamesNeverMissing bool
}

// inconclusive is the status of what nobody could tell.
const inconclusive = "inconclusive"

// Unseen returns the parts that could not be looked at, by the word that begins
// the ids of their findings.
func (f Facts) Unseen() []string {
	var unseen []string
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
