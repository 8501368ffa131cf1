package failure

import "github.com/dmarcd/dmarcd/internal/quirk"

// Quirk is a kind of deviation from the specifications. The zero value means none.
type Quirk uint8

// The quirks. Their names are stable: they are stored and part of the API.
var (
	quirks quirk.Table[Quirk]

	TextOnly              = quirks.Define("text-only", "The report is plain text without a feedback report.")
	FeedbackTypeMissing   = quirks.Define("feedback-type-missing", "The feedback type is missing; other fields show that this is an authentication failure report.")
	VersionMissing        = quirks.Define("version-missing", "There is no version.")
	VersionUnusual        = quirks.Define("version-unusual", "The version is not 1.")
	FieldMalformed        = quirks.Define("field-malformed", "A malformed line was ignored.")
	FieldRepeated         = quirks.Define("field-repeated", "A field that may occur only once is repeated; the first one applies.")
	AuthFailureMissing    = quirks.Define("auth-failure-missing", "The type of failure is missing.")
	AuthFailureUnknown    = quirks.Define("auth-failure-unknown", "The unknown type of failure was kept unchanged.")
	AlignmentMissing      = quirks.Define("alignment-missing", "There is no Identity-Alignment, which RFC 9991 requires.")
	AlignmentUnknown      = quirks.Define("alignment-unknown", "Identity-Alignment contains something other than dkim and spf.")
	ArrivalDateMissing    = quirks.Define("arrival-date-missing", "The arrival date is missing; the date of the report is used instead.")
	ArrivalDateAlias      = quirks.Define("arrival-date-alias", "The arrival date has the obsolete name Received-Date.")
	DateUnreadable        = quirks.Define("date-unreadable", "A date is invalid.")
	DateImplausible       = quirks.Define("date-implausible", "The arrival date is before 2011 or more than two days in the future; the report counts on the day it was received.")
	ReportedDomainMissing = quirks.Define("reported-domain-missing", "The reported domain is missing; the From domain of the message is used instead.")
	SourceIPMissing       = quirks.Define("source-ip-missing", "There is no source address.")
	SourceIPForm          = quirks.Define("source-ip-form", "The source address is not in canonical form.")
	SourceIPUnreadable    = quirks.Define("source-ip-unreadable", "The invalid source address was kept unchanged.")
	DeliveryResultUnknown = quirks.Define("delivery-result-unknown", "The delivery result is unknown; it is treated as other.")
	OriginalMissing       = quirks.Define("original-missing", "The headers of the failed message are missing.")
)

// Quirks returns all quirks in order.
func Quirks() []Quirk { return quirks.All() }

// String returns the stable name of the quirk, such as "text-only".
func (q Quirk) String() string { return quirks.Name(q) }

// Meaning describes the quirk in one sentence.
func (q Quirk) Meaning() string { return quirks.Meaning(q) }
