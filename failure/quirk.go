package failure

import "github.com/dmarcd/dmarcd/internal/quirk"

// Quirk is a kind of deviation from the specifications. The zero value means none.
type Quirk uint8

// The quirks. The table below explains them.
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
)

// quirks lists all quirks. The names are stable: they are stored and part of the API.
var quirks = quirk.Table{
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

// Quirks returns all quirks in order.
func Quirks() []Quirk { return quirk.All[Quirk](quirks) }

// String returns the stable name of the quirk, such as "text-only".
func (q Quirk) String() string { return quirk.Name(quirks, q) }

// Meaning describes the quirk in one sentence.
func (q Quirk) Meaning() string { return quirk.Meaning(quirks, q) }
