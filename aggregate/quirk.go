package aggregate

import "github.com/dmarcd/dmarcd/internal/quirk"

// Quirk is a kind of deviation from the specifications. The zero value means none.
type Quirk uint8

// The quirks. The table below explains them.
const (
	ByteOrderMark Quirk = iota + 1
	OtherEncoding
	EncodingMislabelled
	EncodingUnknown
	BadBytes
	ControlCharacters

	DeclarationMissing
	XMLVersion
	LeadingJunk
	TrailingJunk
	DocumentType
	UnknownEntity
	BareAmpersand
	BareLessThan
	MalformedTag
	MismatchedTags
	Truncated
	StrayWrapper
	StrayText
	MarkupInText

	NamespaceUnknown
	NamespaceDraft
	NamespaceMissing
	ElementCase
	ElementAlias
	ElementUnknown
	ElementForeign
	ElementRepeated
	ElementsDropped

	ValuePadded
	ValueCase
	ValueAlias
	ValueUnknown
	DomainCase
	DomainForm
	DomainULabels

	VersionMissing
	VersionUnusual
	OrgNameMissing
	EmailMissing
	ReportIDMissing
	ReportIDForm
	TimeFraction
	TimeMilliseconds
	TimeText
	TimeImplausible
	RangeIncomplete
	RangeEmpty
	RangeReversed
	RangeLong
	PolicyIncomplete
	PolicyDomainMissing

	RecordIncomplete
	CountMissing
	CountInvalid
	CountForm
	SourceIPForm
	SourceIPUnreadable
	DispositionMissing
	DispositionPass
	EvaluatedMissing
	ReasonTypeMissing
	ReasonText
	HeaderFromMissing
	EnvelopeFromMissing
	AuthResultsMissing
	AuthDomainMissing
	AuthResultMissing
	SelectorMissing
	SPFMissing
	SPFSeveral
	SPFScope
	EvaluationDisagrees
)

// quirks lists all quirks. The names are stable: they are stored and part of the API.
var quirks = quirk.Table{
	ByteOrderMark:       {"byte-order-mark", "The document starts with a byte order mark."},
	OtherEncoding:       {"other-encoding", "The document is not in UTF-8."},
	EncodingMislabelled: {"encoding-mislabelled", "The declared encoding is wrong."},
	EncodingUnknown:     {"encoding-unknown", "The declared encoding is unknown; UTF-8 was assumed."},
	BadBytes:            {"bad-bytes", "Invalid bytes were replaced."},
	ControlCharacters:   {"control-characters", "Characters that XML does not allow were removed."},

	DeclarationMissing: {"declaration-missing", "There is no XML declaration."},
	XMLVersion:         {"xml-version", "The XML version is not 1.0."},
	LeadingJunk:        {"leading-junk", "There is content before the XML declaration or the root element."},
	TrailingJunk:       {"trailing-junk", "There is content after the report."},
	DocumentType:       {"document-type", "There is a document type declaration, which was ignored."},
	UnknownEntity:      {"unknown-entity", "An undefined entity was kept as text."},
	BareAmpersand:      {"bare-ampersand", "An ampersand was not escaped."},
	BareLessThan:       {"bare-less-than", "A less-than sign was not escaped."},
	MalformedTag:       {"malformed-tag", "The end of a tag or declaration had to be guessed."},
	MismatchedTags:     {"mismatched-tags", "An element was not closed, or was closed with another name."},
	Truncated:          {"truncated", "The document is truncated."},
	StrayWrapper:       {"stray-wrapper", "Unexpected elements enclose the report or parts of it."},
	StrayText:          {"stray-text", "Text between elements was ignored."},
	MarkupInText:       {"markup-in-text", "An element within a value was ignored."},

	NamespaceUnknown: {"namespace-unknown", "The namespace is not that of a DMARC report."},
	NamespaceDraft:   {"namespace-draft", "The namespace is that of a draft."},
	NamespaceMissing: {"namespace-missing", "The report has elements of RFC 9990 but not its namespace."},
	ElementCase:      {"element-case", "The name of an element contains upper-case letters."},
	ElementAlias:     {"element-alias", "An element has a nonstandard name."},
	ElementUnknown:   {"element-unknown", "An unknown element was ignored."},
	ElementForeign:   {"element-foreign", "An element of another namespace was ignored."},
	ElementRepeated:  {"element-repeated", "An element that may occur only once is repeated; the first one applies."},
	ElementsDropped:  {"elements-dropped", "Results, reasons or errors beyond the limit were ignored."},

	ValuePadded:   {"value-padded", "A value is surrounded by blanks."},
	ValueCase:     {"value-case", "A keyword contains upper-case letters."},
	ValueAlias:    {"value-alias", "A nonstandard keyword was translated, such as hardfail to fail."},
	ValueUnknown:  {"value-unknown", "An unknown keyword was kept unchanged."},
	DomainCase:    {"domain-case", "A domain contains upper-case letters."},
	DomainForm:    {"domain-form", "A domain is written as an address or with a trailing dot."},
	DomainULabels: {"domain-u-labels", "A domain is written in U-labels; it was converted to A-labels."},

	VersionMissing:      {"version-missing", "There is no version."},
	VersionUnusual:      {"version-unusual", "The version is not 1.0."},
	OrgNameMissing:      {"org-name-missing", "The name of the reporter is missing; the domain of its address is used instead."},
	EmailMissing:        {"email-missing", "The address of the reporter is missing."},
	ReportIDMissing:     {"report-id-missing", "The report has no id."},
	ReportIDForm:        {"report-id-form", "The report id is in brackets or contains invalid characters."},
	TimeFraction:        {"time-fraction", "A time has a fraction of a second."},
	TimeMilliseconds:    {"time-milliseconds", "A time is in milliseconds."},
	TimeText:            {"time-text", "A time is a date instead of a number of seconds."},
	TimeImplausible:     {"time-implausible", "A time is before 2011 or more than two days in the future; if it is the start, the report counts on the day it was received."},
	RangeIncomplete:     {"range-incomplete", "One end of the period is missing or invalid."},
	RangeEmpty:          {"range-empty", "The period is empty."},
	RangeReversed:       {"range-reversed", "The period ends before it begins."},
	RangeLong:           {"range-long", "The period is longer than a day."},
	PolicyIncomplete:    {"policy-incomplete", "A required part of the published policy is missing or empty."},
	PolicyDomainMissing: {"policy-domain-missing", "The policy domain is missing; the From domain of the first record is used instead."},

	RecordIncomplete:    {"record-incomplete", "An incomplete record was skipped."},
	CountMissing:        {"count-missing", "A record without a count was skipped."},
	CountInvalid:        {"count-invalid", "A record was skipped: its count is not a whole number from 0 to 2^53-1."},
	CountForm:           {"count-form", "A count is written with a fraction of zeros or with commas."},
	SourceIPForm:        {"source-ip-form", "A source address is not in canonical form."},
	SourceIPUnreadable:  {"source-ip-unreadable", "An invalid source address was kept unchanged."},
	DispositionMissing:  {"disposition-missing", "A record has no disposition."},
	DispositionPass:     {"disposition-pass", "A record has the disposition pass, which only RFC 9990 defines."},
	EvaluatedMissing:    {"evaluated-missing", "A record lacks the evaluated result of DKIM or SPF."},
	ReasonTypeMissing:   {"reason-type-missing", "A reason has no type."},
	ReasonText:          {"reason-text", "The text of a reason is outside its comment; it was used as the comment."},
	HeaderFromMissing:   {"header-from-missing", "A record has no From domain."},
	EnvelopeFromMissing: {"envelope-from-missing", "A record has no envelope sender, which RFC 7489 requires."},
	AuthResultsMissing:  {"auth-results-missing", "A record has neither DKIM nor SPF results."},
	AuthDomainMissing:   {"auth-domain-missing", "A DKIM or SPF result has no domain."},
	AuthResultMissing:   {"auth-result-missing", "A DKIM or SPF result has no result."},
	SelectorMissing:     {"selector-missing", "A DKIM result has no selector, which RFC 9990 requires."},
	SPFMissing:          {"spf-missing", "A record has no SPF result, which RFC 7489 requires."},
	SPFSeveral:          {"spf-several", "A record has several SPF results; RFC 9990 allows one."},
	SPFScope:            {"spf-scope", "An SPF result has no scope, which RFC 7489 requires, or helo, which RFC 9990 does not define."},
	EvaluationDisagrees: {"evaluation-disagrees", "The evaluated results of a record do not follow from its authentication results."},
}

// Quirks returns all quirks in order.
func Quirks() []Quirk { return quirk.All[Quirk](quirks) }

// String returns the stable name of the quirk, such as "bare-ampersand".
func (q Quirk) String() string { return quirk.Name(quirks, q) }

// Meaning describes the quirk in one sentence.
func (q Quirk) Meaning() string { return quirk.Meaning(quirks, q) }

// QuirkCount is a quirk with its number of occurrences in a report.
type QuirkCount = quirk.Count[Quirk]

// tally counts quirks.
type tally struct{ quirk.Tally[Quirk] }
