package tlsrpt

// Quirk is a kind of deviation from RFC 8460 that a reader of reports has to know
// of. The zero value is none.
type Quirk uint8

// The quirks. What each of them means stands in the table below.
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

	quirkCount
)

// quirks is the table of all quirks: the name is stable and goes into databases
// and interfaces.
var quirks = [quirkCount]struct{ name, meaning string }{
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

// Quirks returns all quirks in their order.
func Quirks() []Quirk {
	all := make([]Quirk, 0, quirkCount-1)
	for q := Quirk(1); q < quirkCount; q++ {
		all = append(all, q)
	}
	return all
}

// String returns the stable name of the quirk, such as "mx-host-text".
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

// QuirkCount says how often a report has a quirk.
type QuirkCount struct {
	Quirk Quirk
	Count int
}

// tally counts quirks.
type tally [quirkCount]int

func (t *tally) note(q Quirk) { t[q]++ }

// noteIf notes the quirk where it is there.
func (t *tally) noteIf(there bool, q Quirk) {
	if there {
		t[q]++
	}
}

// counts returns the quirks that were met, in their order.
func (t *tally) counts() []QuirkCount {
	var met []QuirkCount
	for q, n := range t {
		if n > 0 {
			met = append(met, QuirkCount{Quirk: Quirk(q), Count: n})
		}
	}
	return met
}
