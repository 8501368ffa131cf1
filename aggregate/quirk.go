package aggregate

// Quirk is a kind of deviation from the specifications that a reader has to know
// of. The zero value is none.
type Quirk uint8

// The quirks. What each of them means stands in the table below.
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

	quirkCount
)

// quirks is the table of all quirks: the name is stable and goes into databases
// and interfaces.
var quirks = [quirkCount]struct{ name, meaning string }{
	ByteOrderMark:       {"byte-order-mark", "The document begins with a byte order mark."},
	OtherEncoding:       {"other-encoding", "The document is not in UTF-8."},
	EncodingMislabelled: {"encoding-mislabelled", "The declared encoding is not the one of the document."},
	EncodingUnknown:     {"encoding-unknown", "The declared encoding is not known; the document was read as UTF-8."},
	BadBytes:            {"bad-bytes", "Bytes that are no characters were replaced."},
	ControlCharacters:   {"control-characters", "Characters that XML does not allow were left out."},

	DeclarationMissing: {"declaration-missing", "There is no XML declaration."},
	XMLVersion:         {"xml-version", "The XML version is not 1.0."},
	LeadingJunk:        {"leading-junk", "Something stands before the XML declaration or the root element."},
	TrailingJunk:       {"trailing-junk", "Something stands after the report."},
	DocumentType:       {"document-type", "There is a document type declaration; it was passed over."},
	UnknownEntity:      {"unknown-entity", "An entity that XML does not define was kept as text."},
	BareAmpersand:      {"bare-ampersand", "An ampersand was not escaped."},
	BareLessThan:       {"bare-less-than", "A less-than sign was not escaped."},
	MalformedTag:       {"malformed-tag", "The end of a tag or declaration had to be guessed."},
	MismatchedTags:     {"mismatched-tags", "An element was not closed, or closed by another name."},
	Truncated:          {"truncated", "The document ends before the report does."},
	StrayWrapper:       {"stray-wrapper", "Elements that do not belong there enclose the report or parts of it."},
	StrayText:          {"stray-text", "Text between elements was left out."},
	MarkupInText:       {"markup-in-text", "An element within a value was left out."},

	NamespaceUnknown: {"namespace-unknown", "The namespace is not one of a DMARC report."},
	NamespaceDraft:   {"namespace-draft", "The namespace is one of a draft."},
	NamespaceMissing: {"namespace-missing", "The report has elements of RFC 9990 but not its namespace."},
	ElementCase:      {"element-case", "The name of an element has capital letters."},
	ElementAlias:     {"element-alias", "An element has another name than the specifications give it."},
	ElementUnknown:   {"element-unknown", "An element that no specification has there was left out."},
	ElementForeign:   {"element-foreign", "An element of a namespace that is not the report's was left out."},
	ElementRepeated:  {"element-repeated", "An element that may occur once is repeated; the first one counts."},
	ElementsDropped:  {"elements-dropped", "More results, reasons or errors than the limit allows were left out."},

	ValuePadded:   {"value-padded", "A value has blanks around it."},
	ValueCase:     {"value-case", "A word of a fixed vocabulary has capital letters."},
	ValueAlias:    {"value-alias", "A word stands for another one, such as hardfail for fail."},
	ValueUnknown:  {"value-unknown", "A word is not in the vocabulary of its element; it was kept as it stands."},
	DomainCase:    {"domain-case", "A domain has capital letters."},
	DomainForm:    {"domain-form", "A domain is written as an address or with a trailing dot."},
	DomainULabels: {"domain-u-labels", "A domain is written in U-labels; it was converted to A-labels."},

	VersionMissing:      {"version-missing", "There is no version."},
	VersionUnusual:      {"version-unusual", "The version is not 1.0."},
	OrgNameMissing:      {"org-name-missing", "The reporter does not give its name; the domain of its address stands in."},
	EmailMissing:        {"email-missing", "The reporter does not give its address."},
	ReportIDMissing:     {"report-id-missing", "The report has no id."},
	ReportIDForm:        {"report-id-form", "The report id is in brackets or has characters that it may not have."},
	TimeFraction:        {"time-fraction", "A time has a fraction of a second."},
	TimeMilliseconds:    {"time-milliseconds", "A time is in milliseconds."},
	TimeText:            {"time-text", "A time is a date and not a number of seconds."},
	TimeImplausible:     {"time-implausible", "A time is before 2011 or more than two days in the future; the report counts on the day it was received if it begins then."},
	RangeIncomplete:     {"range-incomplete", "One end of the time range is missing or cannot be read."},
	RangeEmpty:          {"range-empty", "The time range begins when it ends."},
	RangeReversed:       {"range-reversed", "The time range ends before it begins."},
	RangeLong:           {"range-long", "The time range is longer than a day."},
	PolicyIncomplete:    {"policy-incomplete", "A required part of the published policy is missing or empty."},
	PolicyDomainMissing: {"policy-domain-missing", "The report names no policy domain; the author domain of its first record stands in."},

	RecordIncomplete:    {"record-incomplete", "A record that is not closed was skipped."},
	CountMissing:        {"count-missing", "A record without a count was skipped."},
	CountInvalid:        {"count-invalid", "A record was skipped: its count is no whole number from 0 to 2^53-1."},
	CountForm:           {"count-form", "A count is written with a fraction of zeros or with commas."},
	SourceIPForm:        {"source-ip-form", "A source address is not in canonical form."},
	SourceIPUnreadable:  {"source-ip-unreadable", "A source address cannot be read; it was kept as it stands."},
	DispositionMissing:  {"disposition-missing", "A record has no disposition."},
	DispositionPass:     {"disposition-pass", "A record has the disposition pass, which only RFC 9990 knows."},
	EvaluatedMissing:    {"evaluated-missing", "A record lacks the evaluated result of DKIM or SPF."},
	ReasonTypeMissing:   {"reason-type-missing", "A reason has no type."},
	ReasonText:          {"reason-text", "The text of a reason is outside of its comment; it was taken as the comment."},
	HeaderFromMissing:   {"header-from-missing", "A record does not name the author domain."},
	EnvelopeFromMissing: {"envelope-from-missing", "A record does not name the envelope sender, which RFC 7489 asks for."},
	AuthResultsMissing:  {"auth-results-missing", "A record has neither DKIM nor SPF results."},
	AuthDomainMissing:   {"auth-domain-missing", "A DKIM or SPF result names no domain."},
	AuthResultMissing:   {"auth-result-missing", "A DKIM or SPF result has no result."},
	SelectorMissing:     {"selector-missing", "A DKIM result has no selector, which RFC 9990 asks for."},
	SPFMissing:          {"spf-missing", "A record has no SPF result, which RFC 7489 asks for."},
	SPFSeveral:          {"spf-several", "A record has several SPF results, of which RFC 9990 allows one."},
	SPFScope:            {"spf-scope", "An SPF result has no scope, which RFC 7489 asks for, or helo, which RFC 9990 does not know."},
	EvaluationDisagrees: {"evaluation-disagrees", "The evaluated results of a record do not follow from its authentication results."},
}

// Quirks returns all quirks in their order.
func Quirks() []Quirk {
	all := make([]Quirk, 0, quirkCount-1)
	for q := Quirk(1); q < quirkCount; q++ {
		all = append(all, q)
	}
	return all
}

// String returns the stable name of the quirk, such as "bare-ampersand".
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
