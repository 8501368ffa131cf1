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
	ByteOrderMark:     {"byte-order-mark", "The document begins with a byte order mark."},
	OtherEncoding:     {"other-encoding", "The document is not in UTF-8."},
	BadBytes:          {"bad-bytes", "Bytes that are no characters were replaced."},
	UnescapedControl:  {"unescaped-control", "A text has a control character that is not escaped."},
	ControlCharacters: {"control-characters", "Control characters in a text were left out."},
	BadEscape:         {"bad-escape", "A text has an escape that JSON does not know; it was kept as it stands or replaced."},

	StrayWrapper: {"stray-wrapper", "The report stands in a list."},
	StrayComma:   {"stray-comma", "A comma stands where nothing follows or precedes it."},
	Malformed:    {"malformed", "The document is not JSON from some place on; what came before was read."},
	Truncated:    {"truncated", "The document ends before the report does."},
	TrailingJunk: {"trailing-junk", "Something stands after the report."},

	MemberForm:     {"member-form", "The name of a member is written in another way, such as reportId or report_id."},
	MemberAlias:    {"member-alias", "A member has another name than RFC 8460 gives it."},
	MemberUnknown:  {"member-unknown", "A member that RFC 8460 does not have there was left out."},
	MemberRepeated: {"member-repeated", "A member is repeated; the last one counts."},

	NullValue:         {"null-value", "A value is null; it counts as absent."},
	ValueType:         {"value-type", "A number is written as a text, or a text as a number or truth value."},
	ValueUnusable:     {"value-unusable", "A value of a type that cannot be used was left out."},
	ValuePadded:       {"value-padded", "A text has blanks around it."},
	ValueCase:         {"value-case", "A word of a fixed vocabulary has capital letters."},
	ValueUnknown:      {"value-unknown", "A policy type or result type is not one of RFC 8460; it was kept as it stands."},
	SingleValue:       {"single-value", "A single value stands where a list belongs."},
	ListInText:        {"list-in-text", "A list is written as JSON within a text."},
	ValuesDropped:     {"values-dropped", "More policy lines or MX hosts than the limit allows were left out."},
	DomainCase:        {"domain-case", "A domain or host has capital letters."},
	DomainForm:        {"domain-form", "A domain or host has a trailing dot."},
	DomainULabels:     {"domain-u-labels", "A domain or host is written in U-labels; it was converted to A-labels."},
	AddressForm:       {"address-form", "An address is not in canonical form."},
	AddressUnreadable: {"address-unreadable", "An address cannot be read; it was kept as it stands."},

	OrgNameMissing:  {"org-name-missing", "The reporter does not give its name; the domain of its address stands in."},
	ContactMissing:  {"contact-missing", "The reporter does not give its address."},
	ReportIDMissing: {"report-id-missing", "The report has no id."},
	ReportIDForm:    {"report-id-form", "The report id has characters that file names and addresses treat specially, such as + / @ < >."},
	TimeZoneMissing: {"time-zone-missing", "A time is without a zone; it was read as UTC."},
	TimeForm:        {"time-form", "A time is not in the form of RFC 3339."},
	TimeNumber:      {"time-number", "A time is a number of seconds or milliseconds."},
	TimeUnreadable:  {"time-unreadable", "A time cannot be read; it counts as absent."},
	TimeImplausible: {"time-implausible", "A time is before 2011 or more than two days in the future; the report counts on the day it was received if it begins then."},
	RangeMissing:    {"range-missing", "The report does not say which time it is about."},
	RangeIncomplete: {"range-incomplete", "One end of the time range is missing or cannot be read."},
	RangeEmpty:      {"range-empty", "The time range begins when it ends."},
	RangeReversed:   {"range-reversed", "The time range ends before it begins."},
	RangeLong:       {"range-long", "The time range is longer than a day."},

	PoliciesEmpty:       {"policies-empty", "The report has no policies."},
	PolicyIncomplete:    {"policy-incomplete", "A policy at the place of the damage was skipped."},
	PolicyMissing:       {"policy-missing", "An entry of the policies does not say which policy it is about."},
	PolicyTypeMissing:   {"policy-type-missing", "A policy has no type."},
	PolicyDomainMissing: {"policy-domain-missing", "A policy names no domain."},
	MXHostMissing:       {"mx-host-missing", "An MTA-STS policy has no mx-host."},
	MXHostText:          {"mx-host-text", "The value of mx-host is a text, as in the example of RFC 8460, and not a list."},
	MXHostPrefix:        {"mx-host-prefix", `An MX host is written as a line of a policy, with "mx:" before it.`},

	SummaryMissing:    {"summary-missing", "A policy has no summary; its counts are 0."},
	CountMissing:      {"count-missing", "A count is missing; it is taken as 0."},
	CountInvalid:      {"count-invalid", "A count is no whole number from 0 to 2^53-1; it is taken as 0."},
	CountForm:         {"count-form", "A count is written with a sign, a fraction, an exponent or leading zeros."},
	DetailsMissing:    {"details-missing", "A policy has failed sessions but no failure details."},
	DetailsExceed:     {"details-exceed", "The failure details of a policy count more sessions than its summary."},
	ResultTypeMissing: {"result-type-missing", "A failure detail does not say what failed."},
	PeerMissing:       {"peer-missing", "A failure detail names neither an address nor a host."},
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
