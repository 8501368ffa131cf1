package failure

// Quirk is a kind of deviation from the specifications that a reader has to know
// of. The zero value is none.
type Quirk uint8

// The quirks. What each of them means stands in the table below.
const (
	TextOnly Quirk = iota + 1
	FeedbackTypeMissing
	VersionMissing
	VersionUnusual
	FieldMalformed
	FieldRepeated
	AuthFailureMissing
	AuthFailureUnknown
	AlignmentMissing
	AlignmentUnknown
	ArrivalDateMissing
	ArrivalDateAlias
	DateUnreadable
	DateImplausible
	ReportedDomainMissing
	SourceIPMissing
	SourceIPForm
	SourceIPUnreadable
	DeliveryResultUnknown
	OriginalMissing

	quirkCount
)

// quirks is the table of all quirks: the name is stable and goes into databases
// and interfaces.
var quirks = [quirkCount]struct{ name, meaning string }{
	TextOnly:              {"text-only", "The report is plain text without a feedback report."},
	FeedbackTypeMissing:   {"feedback-type-missing", "The feedback type is missing; other fields show that this is an authentication failure report."},
	VersionMissing:        {"version-missing", "There is no version."},
	VersionUnusual:        {"version-unusual", "The version is not 1."},
	FieldMalformed:        {"field-malformed", "A malformed line was ignored."},
	FieldRepeated:         {"field-repeated", "A field that may occur only once is repeated; the first one applies."},
	AuthFailureMissing:    {"auth-failure-missing", "The type of failure is missing."},
	AuthFailureUnknown:    {"auth-failure-unknown", "The unknown type of failure was kept unchanged."},
	AlignmentMissing:      {"alignment-missing", "There is no Identity-Alignment, which RFC 9991 requires."},
	AlignmentUnknown:      {"alignment-unknown", "Identity-Alignment contains something other than dkim and spf."},
	ArrivalDateMissing:    {"arrival-date-missing", "The arrival date is missing; the date of the report is used instead."},
	ArrivalDateAlias:      {"arrival-date-alias", "The arrival date has the obsolete name Received-Date."},
	DateUnreadable:        {"date-unreadable", "A date is invalid."},
	DateImplausible:       {"date-implausible", "The arrival date is before 2011 or more than two days in the future; the report counts on the day it was received."},
	ReportedDomainMissing: {"reported-domain-missing", "The reported domain is missing; the From domain of the message is used instead."},
	SourceIPMissing:       {"source-ip-missing", "There is no source address."},
	SourceIPForm:          {"source-ip-form", "The source address is not in canonical form."},
	SourceIPUnreadable:    {"source-ip-unreadable", "The invalid source address was kept unchanged."},
	DeliveryResultUnknown: {"delivery-result-unknown", "The delivery result is unknown; it is treated as other."},
	OriginalMissing:       {"original-missing", "The headers of the failed message are missing."},
}

// Quirks returns all quirks in their order.
func Quirks() []Quirk {
	all := make([]Quirk, 0, quirkCount-1)
	for q := Quirk(1); q < quirkCount; q++ {
		all = append(all, q)
	}
	return all
}

// String returns the stable name of the quirk, such as "text-only".
func (q Quirk) String() string {
	if q >= quirkCount {
		return ""
	}
	return quirks[q].name
}

// Meaning returns one sentence that says what the quirk is.
func (q Quirk) Meaning() string {
	if q >= quirkCount {
		return ""
	}
	return quirks[q].meaning
}

// quirkSet holds the quirks that were met.
type quirkSet [quirkCount]bool

// noteIf notes the quirk where it is there.
func (s *quirkSet) noteIf(there bool, q Quirk) {
	if there {
		s[q] = true
	}
}

// list returns the quirks that were met, in their order.
func (s *quirkSet) list() []Quirk {
	var met []Quirk
	for _, q := range Quirks() {
		if s[q] {
			met = append(met, q)
		}
	}
	return met
}
