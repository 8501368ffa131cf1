package dmarcd

import "time"

// Check is one look at a domain's DNS.
type Check struct {
	// At is when the look began.
	At time.Time
	// Conclusive tells that the DNS gave an answer, if only that there is
	// nothing. An inconclusive check says nothing about the domain and
	// changes nothing of it.
	Conclusive bool
	// Reason says in words why the check is inconclusive.
	Reason string
	// Record, RecordDomain and Policy are as in Domain.
	Record       string
	RecordDomain string
	Policy       string
	// Usable tells that exactly one usable record applies to the domain, and
	// that neither several nor an unusable one stand at its own name.
	Usable bool
	// Mailboxes holds the local parts of those rua addresses of the record
	// that are at this server's report domain.
	Mailboxes []string
	// NeedsMailbox tells that this server has a report domain: the domain is
	// then active only if one of Mailboxes is its own or that of a parent
	// domain of the same team.
	NeedsMailbox bool
	// Asked tells that somebody asked for the check: what it found is believed
	// at once, even where an older answer may still be in caches.
	Asked bool
	// TTL is how long the answer that told the record may be kept; 0 where it is
	// not known.
	TTL time.Duration

	// Facts is what was seen of all parts, nil where only DMARC was looked at;
	// the fields below are then empty too.
	Facts *Facts
	// Findings is what there is to say, the most serious first.
	Findings []Finding
	// Grade is A+, A, B, C, D, E or F, "" where nobody could tell the policy.
	Grade string
	// Next is the finding that is best mended next, nil where there is none.
	Next *Finding
}

// KeptCheck is an entry of a domain's history: full checks from FirstAt to LastAt had
// the same result.
type KeptCheck struct {
	ID              CheckID
	FirstAt, LastAt time.Time
	// Check is the result: At is LastAt, and what only a check of DMARC alone has is not
	// set. Of the facts, those are there that the API shows.
	Check Check
	// Changes is how it differs from the entry before; none for the first.
	Changes []Change
}
