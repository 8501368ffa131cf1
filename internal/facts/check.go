package facts

import (
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
)

// Check is the result of checking the DNS of a domain.
type Check struct {
	// At is when the check started.
	At time.Time
	// Conclusive is true if DNS answered, even if there is no record. An inconclusive
	// check says nothing about the domain and does not change it.
	Conclusive bool
	// Reason explains why the check is inconclusive.
	Reason string
	// Record, RecordDomain and Policy are as in dmarcd.Domain.
	Record       string
	RecordDomain string
	Policy       string
	// Usable is true if exactly one usable record applies to the domain, and its own name
	// has neither several records nor an unusable one.
	Usable bool
	// Mailboxes are the local parts of the rua addresses in the record that belong to
	// this server's report domain.
	Mailboxes []string
	// NeedsMailbox is true if this server has a report domain: the domain is then active
	// only if one of Mailboxes belongs to it or to a parent domain of the same team.
	NeedsMailbox bool
	// Own is true if the record is at the domain's own name, not at the target of an alias.
	Own bool
	// Proof is the proof that DNS has; "" if none is required, or DNS did not answer.
	Proof dmarcd.Proof
	// Asked is true if a user requested the check: its result applies immediately, even
	// if caches may still have an older answer.
	Asked bool
	// TTL is how long the answer with the record may be cached; 0 if unknown.
	TTL time.Duration

	// Facts are the results for all parts, nil if only DMARC was checked. The fields
	// below are then empty too.
	Facts *Facts
	// Findings are sorted by severity, the most serious first.
	Findings []dmarcd.Finding
	// Grade is A+, A, B, C, D, E or F; "" if the policy could not be determined.
	Grade string
	// Next is the finding to fix next, nil if there is none.
	Next *dmarcd.Finding
}

// DNSRecords returns the records that findings propose, that of the next step first.
func (c Check) DNSRecords() []dmarcd.DNSRecord {
	var records []dmarcd.DNSRecord
	if c.Next != nil && c.Next.Record.Name != "" {
		records = append(records, c.Next.Record)
	}
	for _, f := range c.Findings {
		if f.Record.Name != "" {
			records = append(records, f.Record)
		}
	}
	return records
}

// StoredCheck is an entry of a domain's history: all full checks from FirstAt to LastAt had
// the same result.
type StoredCheck struct {
	ID              dmarcd.CheckID
	FirstAt, LastAt time.Time
	// Check is the result. Its At is LastAt, fields for checks of DMARC alone are not
	// set, and the facts are limited to those in the API.
	Check Check
	// Changes are the differences from the previous entry; none for the first.
	Changes []Change
}

// Unanswered returns what is known of a domain whose DNS has never answered, when it was last checked.
func Unanswered(domain string, at time.Time) StoredCheck {
	const reason = "DNS did not answer"
	return StoredCheck{FirstAt: at, LastAt: at, Check: Check{At: at, Facts: &Facts{
		Domain: domain,
		DMARC:  DMARC{Status: inconclusive, Reason: reason}, SPF: SPF{Status: inconclusive, Reason: reason},
		MX: MX{Status: inconclusive, Reason: reason}, MTASTS: MTASTS{Status: inconclusive, Reason: reason},
		TLSRPT: TLSRPT{Status: inconclusive, Reason: reason}, BIMI: BIMI{Status: inconclusive, Reason: reason},
		DANE: DANE{Status: inconclusive, Reason: reason}, DNSSEC: DNSSEC{Status: inconclusive, Reason: reason},
	}}}
}

// DomainChange is a check of a domain that found changes in DNS.
type DomainChange struct {
	ID     dmarcd.CheckID
	Domain string
	At     time.Time
	// Grade is the grade after the changes.
	Grade string
	// Changes are all differences from the previous entry of the history; Parts are those of DNS.
	Changes []Change
	Parts   []Part
}

// Published is the state of the destinations of reports in the latest full check.
type Published struct {
	// Consent is whether the reporting address may receive reports about the domain, in
	// the terms of the check; "" if the DMARC record does not contain the address.
	Consent string
	// TLSRecord is the TLS-RPT record, "" if there is none; it is meaningful only if
	// TLSKnown is true.
	TLSRecord string
	TLSKnown  bool
	// Repaired is the DMARC record that the findings of the check propose without a change
	// of policy, "" if they propose none.
	Repaired string
}

// Published returns the state of the destinations of reports for a reporting address. It is empty for
// a check without facts.
func (c Check) Published(address string) Published {
	if c.Facts == nil {
		return Published{}
	}
	published := Published{TLSRecord: c.Facts.TLSRPT.Record, TLSKnown: c.Facts.TLSRPT.Status != inconclusive}
	for _, d := range c.Facts.DMARC.Destinations {
		if strings.EqualFold(d.URI, "mailto:"+address) {
			published.Consent = d.Consent
		}
	}
	return published
}
