package tlsrpt

import "github.com/dmarcd/dmarcd/internal/quirk"

// Quirk is a kind of deviation from RFC 8460. The zero value means none.
type Quirk uint8

// The quirks. The table below explains them.
const (
	ByteOrderMark Quirk = iota + 1
	OtherEncoding
	BadBytes
	UnescapedControl
	ControlCharacters
	BadEscape

	StrayWrapper
	StrayComma
	Malformed
	Truncated
	TrailingJunk

	MemberForm
	MemberAlias
	MemberUnknown
	MemberRepeated

	NullValue
	ValueType
	ValueUnusable
	ValuePadded
	ValueCase
	ValueUnknown
	SingleValue
	ListInText
	ValuesDropped
	DomainCase
	DomainForm
	DomainULabels
	AddressForm
	AddressUnreadable

	OrgNameMissing
	ContactMissing
	ReportIDMissing
	ReportIDForm
	TimeZoneMissing
	TimeForm
	TimeNumber
	TimeUnreadable
	TimeImplausible
	RangeMissing
	RangeIncomplete
	RangeEmpty
	RangeReversed
	RangeLong

	PoliciesEmpty
	PolicyIncomplete
	PolicyMissing
	PolicyTypeMissing
	PolicyDomainMissing
	MXHostMissing
	MXHostText
	MXHostPrefix

	SummaryMissing
	CountMissing
	CountInvalid
	CountForm
	DetailsMissing
	DetailsExceed
	ResultTypeMissing
	PeerMissing
)

// quirks lists all quirks. The names are stable: they are stored and part of the API.
var quirks = quirk.Table{
	ByteOrderMark:     {"byte-order-mark", "The document starts with a byte order mark."},
	OtherEncoding:     {"other-encoding", "The document is not in UTF-8."},
	BadBytes:          {"bad-bytes", "Invalid bytes were replaced."},
	UnescapedControl:  {"unescaped-control", "A string contains an unescaped control character."},
	ControlCharacters: {"control-characters", "Control characters in a string were removed."},
	BadEscape:         {"bad-escape", "A string contains an invalid escape sequence, which was kept or replaced."},

	StrayWrapper: {"stray-wrapper", "The report is inside a list."},
	StrayComma:   {"stray-comma", "There is a superfluous comma."},
	Malformed:    {"malformed", "The document is invalid JSON from some point on; the part before it was used."},
	Truncated:    {"truncated", "The document is truncated."},
	TrailingJunk: {"trailing-junk", "There is content after the report."},

	MemberForm:     {"member-form", "The name of a member is spelled differently, such as reportId or report_id."},
	MemberAlias:    {"member-alias", "A member has a nonstandard name."},
	MemberUnknown:  {"member-unknown", "An unknown member was ignored."},
	MemberRepeated: {"member-repeated", "A member is repeated; the last one applies."},

	NullValue:         {"null-value", "A value is null; it is treated as absent."},
	ValueType:         {"value-type", "A number is written as a string, or a string as a number or boolean."},
	ValueUnusable:     {"value-unusable", "A value of the wrong type was ignored."},
	ValuePadded:       {"value-padded", "A string is surrounded by blanks."},
	ValueCase:         {"value-case", "A keyword contains upper-case letters."},
	ValueUnknown:      {"value-unknown", "An unknown policy type or result type was kept unchanged."},
	SingleValue:       {"single-value", "There is a single value instead of a list."},
	ListInText:        {"list-in-text", "A list is written as JSON inside a string."},
	ValuesDropped:     {"values-dropped", "Policy lines or MX hosts beyond the limit were ignored."},
	DomainCase:        {"domain-case", "A domain or host contains upper-case letters."},
	DomainForm:        {"domain-form", "A domain or host has a trailing dot."},
	DomainULabels:     {"domain-u-labels", "A domain or host is written in U-labels; it was converted to A-labels."},
	AddressForm:       {"address-form", "An address is not in canonical form."},
	AddressUnreadable: {"address-unreadable", "An invalid address was kept unchanged."},

	OrgNameMissing:  {"org-name-missing", "The name of the reporter is missing; the domain of its address is used instead."},
	ContactMissing:  {"contact-missing", "The address of the reporter is missing."},
	ReportIDMissing: {"report-id-missing", "The report has no id."},
	ReportIDForm:    {"report-id-form", "The report id contains characters with a special meaning in file names and addresses, such as + / @ < >."},
	TimeZoneMissing: {"time-zone-missing", "A time has no time zone; UTC was assumed."},
	TimeForm:        {"time-form", "A time is not in the format of RFC 3339."},
	TimeNumber:      {"time-number", "A time is a number of seconds or milliseconds."},
	TimeUnreadable:  {"time-unreadable", "A time is invalid; it is treated as absent."},
	TimeImplausible: {"time-implausible", "A time is before 2011 or more than two days in the future; if it is the start, the report counts on the day it was received."},
	RangeMissing:    {"range-missing", "The period is missing."},
	RangeIncomplete: {"range-incomplete", "One end of the period is missing or invalid."},
	RangeEmpty:      {"range-empty", "The period is empty."},
	RangeReversed:   {"range-reversed", "The period ends before it begins."},
	RangeLong:       {"range-long", "The period is longer than a day."},

	PoliciesEmpty:       {"policies-empty", "The report has no policies."},
	PolicyIncomplete:    {"policy-incomplete", "An incomplete policy was skipped."},
	PolicyMissing:       {"policy-missing", "An entry of the policies has no policy."},
	PolicyTypeMissing:   {"policy-type-missing", "A policy has no type."},
	PolicyDomainMissing: {"policy-domain-missing", "A policy has no domain."},
	MXHostMissing:       {"mx-host-missing", "An MTA-STS policy has no mx-host."},
	MXHostText:          {"mx-host-text", "The value of mx-host is a string instead of a list, as in the example of RFC 8460."},
	MXHostPrefix:        {"mx-host-prefix", `An MX host is written as a line of a policy, with "mx:" before it.`},

	SummaryMissing:    {"summary-missing", "A policy has no summary; its counts are 0."},
	CountMissing:      {"count-missing", "A count is missing; 0 was assumed."},
	CountInvalid:      {"count-invalid", "A count is not a whole number from 0 to 2^53-1; 0 was assumed."},
	CountForm:         {"count-form", "A count is written with a sign, a fraction, an exponent or leading zeros."},
	DetailsMissing:    {"details-missing", "A policy has failed sessions but no failure details."},
	DetailsExceed:     {"details-exceed", "The failure details of a policy count more sessions than its summary."},
	ResultTypeMissing: {"result-type-missing", "A failure detail has no result type."},
	PeerMissing:       {"peer-missing", "A failure detail has neither an address nor a host."},
}

// Quirks returns all quirks in order.
func Quirks() []Quirk { return quirk.All[Quirk](quirks) }

// String returns the stable name of the quirk, such as "mx-host-text".
func (q Quirk) String() string { return quirk.Name(quirks, q) }

// Meaning describes the quirk in one sentence.
func (q Quirk) Meaning() string { return quirk.Meaning(quirks, q) }

// QuirkCount is a quirk with its number of occurrences in a report.
type QuirkCount = quirk.Count[Quirk]

// tally counts quirks.
type tally struct{ quirk.Tally[Quirk] }
