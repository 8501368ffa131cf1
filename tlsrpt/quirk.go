package tlsrpt

import "github.com/dmarcd/dmarcd/internal/quirk"

// Quirk is a kind of deviation from RFC 8460. The zero value means none.
type Quirk uint8

// The quirks. Their names are stable: they are stored and part of the API.
var (
	quirks quirk.Table[Quirk]

	ByteOrderMark     = quirks.Define("byte-order-mark", "The document starts with a byte order mark.")
	OtherEncoding     = quirks.Define("other-encoding", "The document is not in UTF-8.")
	BadBytes          = quirks.Define("bad-bytes", "Invalid bytes were replaced.")
	UnescapedControl  = quirks.Define("unescaped-control", "A string contains an unescaped control character.")
	ControlCharacters = quirks.Define("control-characters", "Control characters in a string were removed.")
	BadEscape         = quirks.Define("bad-escape", "A string contains an invalid escape sequence, which was kept or replaced.")

	StrayWrapper = quirks.Define("stray-wrapper", "The report is inside a list.")
	StrayComma   = quirks.Define("stray-comma", "There is a superfluous comma.")
	Malformed    = quirks.Define("malformed", "The document is invalid JSON from some point on; the part before it was used.")
	Truncated    = quirks.Define("truncated", "The document is truncated.")
	TrailingJunk = quirks.Define("trailing-junk", "There is content after the report.")

	MemberForm     = quirks.Define("member-form", "The name of a member is spelled differently, such as reportId or report_id.")
	MemberAlias    = quirks.Define("member-alias", "A member has a nonstandard name.")
	MemberUnknown  = quirks.Define("member-unknown", "An unknown member was ignored.")
	MemberRepeated = quirks.Define("member-repeated", "A member is repeated; the last one applies.")

	NullValue         = quirks.Define("null-value", "A value is null; it is treated as absent.")
	ValueType         = quirks.Define("value-type", "A number is written as a string, or a string as a number or boolean.")
	ValueUnusable     = quirks.Define("value-unusable", "A value of the wrong type was ignored.")
	ValuePadded       = quirks.Define("value-padded", "A string is surrounded by blanks.")
	ValueCase         = quirks.Define("value-case", "A keyword contains upper-case letters.")
	ValueUnknown      = quirks.Define("value-unknown", "An unknown policy type or result type was kept unchanged.")
	SingleValue       = quirks.Define("single-value", "There is a single value instead of a list.")
	ListInText        = quirks.Define("list-in-text", "A list is written as JSON inside a string.")
	ValuesDropped     = quirks.Define("values-dropped", "Policy lines or MX hosts beyond the limit were ignored.")
	DomainCase        = quirks.Define("domain-case", "A domain or host contains upper-case letters.")
	DomainForm        = quirks.Define("domain-form", "A domain or host has a trailing dot.")
	DomainULabels     = quirks.Define("domain-u-labels", "A domain or host is written in U-labels; it was converted to A-labels.")
	AddressForm       = quirks.Define("address-form", "An address is not in canonical form.")
	AddressUnreadable = quirks.Define("address-unreadable", "An invalid address was kept unchanged.")

	OrgNameMissing  = quirks.Define("org-name-missing", "The name of the reporter is missing; the domain of its address is used instead.")
	ContactMissing  = quirks.Define("contact-missing", "The address of the reporter is missing.")
	ReportIDMissing = quirks.Define("report-id-missing", "The report has no id.")
	ReportIDForm    = quirks.Define("report-id-form", "The report id contains characters with a special meaning in file names and addresses, such as + / @ < >.")
	TimeZoneMissing = quirks.Define("time-zone-missing", "A time has no time zone; UTC was assumed.")
	TimeForm        = quirks.Define("time-form", "A time is not in the format of RFC 3339.")
	TimeNumber      = quirks.Define("time-number", "A time is a number of seconds or milliseconds.")
	TimeUnreadable  = quirks.Define("time-unreadable", "A time is invalid; it is treated as absent.")
	TimeImplausible = quirks.Define("time-implausible", "A time is before 2011 or more than two days in the future; if it is the start, the report counts on the day it was received.")
	RangeMissing    = quirks.Define("range-missing", "The period is missing.")
	RangeIncomplete = quirks.Define("range-incomplete", "One end of the period is missing or invalid.")
	RangeEmpty      = quirks.Define("range-empty", "The period is empty.")
	RangeReversed   = quirks.Define("range-reversed", "The period ends before it begins.")
	RangeLong       = quirks.Define("range-long", "The period is longer than a day.")

	PoliciesEmpty       = quirks.Define("policies-empty", "The report has no policies.")
	PolicyIncomplete    = quirks.Define("policy-incomplete", "An incomplete policy was skipped.")
	PolicyMissing       = quirks.Define("policy-missing", "An entry of the policies has no policy.")
	PolicyTypeMissing   = quirks.Define("policy-type-missing", "A policy has no type.")
	PolicyDomainMissing = quirks.Define("policy-domain-missing", "A policy has no domain.")
	MXHostMissing       = quirks.Define("mx-host-missing", "An MTA-STS policy has no mx-host.")
	MXHostText          = quirks.Define("mx-host-text", "The value of mx-host is a string instead of a list, as in the example of RFC 8460.")
	MXHostPrefix        = quirks.Define("mx-host-prefix", `An MX host is written as a line of a policy, with "mx:" before it.`)

	SummaryMissing    = quirks.Define("summary-missing", "A policy has no summary; its counts are 0.")
	CountMissing      = quirks.Define("count-missing", "A count is missing; 0 was assumed.")
	CountInvalid      = quirks.Define("count-invalid", "A count is not a whole number from 0 to 2^53-1; 0 was assumed.")
	CountForm         = quirks.Define("count-form", "A count is written with a sign, a fraction, an exponent or leading zeros.")
	DetailsMissing    = quirks.Define("details-missing", "A policy has failed sessions but no failure details.")
	DetailsExceed     = quirks.Define("details-exceed", "The failure details of a policy count more sessions than its summary.")
	ResultTypeMissing = quirks.Define("result-type-missing", "A failure detail has no result type.")
	PeerMissing       = quirks.Define("peer-missing", "A failure detail has neither an address nor a host.")
)

// Quirks returns all quirks in order.
func Quirks() []Quirk { return quirks.All() }

// String returns the stable name of the quirk, such as "mx-host-text".
func (q Quirk) String() string { return quirks.Name(q) }

// Meaning describes the quirk in one sentence.
func (q Quirk) Meaning() string { return quirks.Meaning(q) }

// QuirkCount is a quirk with its number of occurrences in a report.
type QuirkCount = quirk.Count[Quirk]

// tally counts quirks.
type tally struct{ quirk.Tally[Quirk] }
