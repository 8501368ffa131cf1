package dmarcd

import "github.com/dmarcd/dmarcd/aggregate"

// Sent is a record of an aggregate report as far as it tells who sent, and what
// became of it. There are many of them: what they have in common is shared, and must
// not be changed.
type Sent struct {
	Share *SentShare
	// N is the number of the record in its report.
	N int
	// Source is the address that the messages came from, in canonical form, or
	// the text of the report where that is no address.
	Source string
	Count  int64
	// Disposition is what the receiver did: none, quarantine or reject.
	Disposition aggregate.Policy
	// DKIM and SPF tell which of them passed, aligned.
	DKIM, SPF bool
	// Identities is what was authenticated.
	Identities *SentIdentities
}

// SentShare is what all records of a share of a report have in common.
type SentShare struct {
	Report ReportID
	// N is the number of the share in the report.
	N int
	// Organization is the reporter.
	Organization string
	Day          Day
	HeaderFrom   string
	// Records is how many records the share has.
	Records int
}

// SentIdentities are the domains that a record names beside its From domain.
type SentIdentities struct {
	EnvelopeFrom string
	DKIM         []aggregate.DKIMResult
	SPF          []aggregate.SPFResult
}

// Counts returns what the record counts.
func (s Sent) Counts() Counts { return countsOf(s.Count, s.DKIM, s.SPF, s.Disposition) }

// SentPlace says which record of which report it is.
type SentPlace struct {
	Report   ReportID
	Share, N int
}

// SentRecord is a record with everything that its report says of it.
type SentRecord struct {
	Place        SentPlace
	Organization string // the reporter
	Day          Day
	aggregate.Record
}
