package dmarcd

import "github.com/dmarcd/dmarcd/aggregate"

// SentMail is what the records of aggregate reports tell about who sent mail, and what
// became of it. There may be millions of records: what many have in common stands once
// in a list, and the records have its place there.
type SentMail struct {
	// Addresses are those that messages came from, in canonical form, or the text of
	// the report where that is no address. None is there twice.
	Addresses []string
	// Identities are what was authenticated. The same may be there more than once.
	Identities []SentIdentities
	// Shares are the parts of reports about one From domain, in no order.
	Shares []SentShare
	// MergedAddresses and MergedIdentities tell at each place whether it stands for
	// several that are not listed one by one, and is one of them; they are nil where
	// all are listed. UnlistedAddresses and UnlistedIdentities are how many are not.
	MergedAddresses, MergedIdentities     []bool
	UnlistedAddresses, UnlistedIdentities int
}

// SentLimits bound a SentMail.
type SentLimits struct {
	// Records is how many there may be; more are an error.
	Records int
	// Keys is how many addresses, and how many identities, are listed one by one. Of
	// more, those with the most messages are, and all others are merged. No record
	// is left out.
	Keys int
	// AddressGroup and IdentitiesGroup name what is merged into one: all that have the
	// same name are. They must have few names; nil merges all.
	AddressGroup    func(address string) string
	IdentitiesGroup func(SentIdentities) string
}

// Records returns how many records there are.
func (m *SentMail) Records() int {
	records := 0
	for i := range m.Shares {
		records += len(m.Shares[i].Records)
	}
	return records
}

// What a SentMail takes in memory, in bytes: a record, a share, an address and the
// identities of a record, each with its texts. Those of identities are an average.
const (
	sentRecordBytes     = 24
	sentShareBytes      = 128
	sentAddressBytes    = 32
	sentIdentitiesBytes = 320
)

// Bytes returns about how much memory it takes.
func (m *SentMail) Bytes() int64 {
	return int64(m.Records())*sentRecordBytes + int64(len(m.Shares))*sentShareBytes +
		int64(len(m.Addresses))*sentAddressBytes + int64(len(m.Identities))*sentIdentitiesBytes
}

// SentIdentities are the domains that a record names beside its From domain.
type SentIdentities struct {
	EnvelopeFrom string
	DKIM         []aggregate.DKIMResult
	SPF          []aggregate.SPFResult
}

// SentShare is the records of a share of a report.
type SentShare struct {
	Report ReportID
	// N is the number of the share in the report.
	N      int
	Domain DomainID
	// Organization is the reporter.
	Organization string
	Day          Day
	HeaderFrom   string
	// Records are those that tell of messages, by their numbers.
	Records []Sent
}

// Sent is a record.
type Sent struct {
	Count int64
	// Address and Identities are places in the lists.
	Address, Identities uint32
	// N is the number of the record in its share.
	N       uint32
	Outcome Outcome
}

// Outcome is what became of a message: which of DKIM and SPF passed, aligned, and what
// the receiver did.
type Outcome uint8

// Outcomes is how many there are: all are below it.
const Outcomes Outcome = 12

const (
	outcomeDKIM Outcome = 1 << iota
	outcomeSPF
	outcomeDisposition // and the bit above it: the place in outcomeDispositions
)

var outcomeDispositions = [...]aggregate.Policy{aggregate.PolicyNone, aggregate.PolicyQuarantine, aggregate.PolicyReject}

// DKIM tells whether DKIM passed.
func (o Outcome) DKIM() bool { return o&outcomeDKIM != 0 }

// SPF tells whether SPF passed.
func (o Outcome) SPF() bool { return o&outcomeSPF != 0 }

// Compliant tells whether one of them passed.
func (o Outcome) Compliant() bool { return o.DKIM() || o.SPF() }

// Disposition is what the receiver did: none, quarantine or reject.
func (o Outcome) Disposition() aggregate.Policy { return outcomeDispositions[o/outcomeDisposition] }

// Counts returns what so many messages count.
func (o Outcome) Counts(messages int64) Counts {
	return countsOf(messages, o.DKIM(), o.SPF(), o.Disposition())
}

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
