package aggregate

import "github.com/dmarcd/dmarcd/internal/quirk"

// Quirk is a kind of deviation from the specifications. The zero value means none.
type Quirk uint8

// The quirks. Their names are stable: they are stored and part of the API.
var (
	quirks quirk.Table[Quirk]

	ByteOrderMark       = quirks.Define("byte-order-mark", "The document starts with a byte order mark.")
	OtherEncoding       = quirks.Define("other-encoding", "The document is not in UTF-8.")
	EncodingMislabelled = quirks.Define("encoding-mislabelled", "The declared encoding is wrong.")
	EncodingUnknown     = quirks.Define("encoding-unknown", "The declared encoding is unknown; UTF-8 was assumed.")
	BadBytes            = quirks.Define("bad-bytes", "Invalid bytes were replaced.")
	ControlCharacters   = quirks.Define("control-characters", "Characters that XML does not allow were removed.")

	DeclarationMissing = quirks.Define("declaration-missing", "There is no XML declaration.")
	XMLVersion         = quirks.Define("xml-version", "The XML version is not 1.0.")
	LeadingJunk        = quirks.Define("leading-junk", "There is content before the XML declaration or the root element.")
	TrailingJunk       = quirks.Define("trailing-junk", "There is content after the report.")
	DocumentType       = quirks.Define("document-type", "There is a document type declaration, which was ignored.")
	UnknownEntity      = quirks.Define("unknown-entity", "An undefined entity was kept as text.")
	BareAmpersand      = quirks.Define("bare-ampersand", "An ampersand was not escaped.")
	BareLessThan       = quirks.Define("bare-less-than", "A less-than sign was not escaped.")
	MalformedTag       = quirks.Define("malformed-tag", "The end of a tag or declaration had to be guessed.")
	MismatchedTags     = quirks.Define("mismatched-tags", "An element was not closed, or was closed with another name.")
	Truncated          = quirks.Define("truncated", "The document is truncated.")
	StrayWrapper       = quirks.Define("stray-wrapper", "Unexpected elements enclose the report or parts of it.")
	StrayText          = quirks.Define("stray-text", "Text between elements was ignored.")
	MarkupInText       = quirks.Define("markup-in-text", "An element within a value was ignored.")

	NamespaceUnknown = quirks.Define("namespace-unknown", "The namespace is not that of a DMARC report.")
	NamespaceDraft   = quirks.Define("namespace-draft", "The namespace is that of a draft.")
	NamespaceMissing = quirks.Define("namespace-missing", "The report has elements of RFC 9990 but not its namespace.")
	ElementCase      = quirks.Define("element-case", "The name of an element contains upper-case letters.")
	ElementAlias     = quirks.Define("element-alias", "An element has a nonstandard name.")
	ElementUnknown   = quirks.Define("element-unknown", "An unknown element was ignored.")
	ElementForeign   = quirks.Define("element-foreign", "An element of another namespace was ignored.")
	ElementRepeated  = quirks.Define("element-repeated", "An element that may occur only once is repeated; the first one applies.")
	ElementsDropped  = quirks.Define("elements-dropped", "Results, reasons or errors beyond the limit were ignored.")

	ValuePadded   = quirks.Define("value-padded", "A value is surrounded by blanks.")
	ValueCase     = quirks.Define("value-case", "A keyword contains upper-case letters.")
	ValueAlias    = quirks.Define("value-alias", "A nonstandard keyword was translated, such as hardfail to fail.")
	ValueUnknown  = quirks.Define("value-unknown", "An unknown keyword was kept unchanged.")
	DomainCase    = quirks.Define("domain-case", "A domain contains upper-case letters.")
	DomainForm    = quirks.Define("domain-form", "A domain is written as an address or with a trailing dot.")
	DomainULabels = quirks.Define("domain-u-labels", "A domain is written in U-labels; it was converted to A-labels.")

	VersionMissing      = quirks.Define("version-missing", "There is no version.")
	VersionUnusual      = quirks.Define("version-unusual", "The version is not 1.0.")
	OrgNameMissing      = quirks.Define("org-name-missing", "The name of the reporter is missing; the domain of its address is used instead.")
	EmailMissing        = quirks.Define("email-missing", "The address of the reporter is missing.")
	ReportIDMissing     = quirks.Define("report-id-missing", "The report has no id.")
	ReportIDForm        = quirks.Define("report-id-form", "The report id is in brackets or contains invalid characters.")
	TimeFraction        = quirks.Define("time-fraction", "A time has a fraction of a second.")
	TimeMilliseconds    = quirks.Define("time-milliseconds", "A time is in milliseconds.")
	TimeText            = quirks.Define("time-text", "A time is a date instead of a number of seconds.")
	TimeImplausible     = quirks.Define("time-implausible", "A time is before 2011 or more than two days in the future; if it is the start, the report counts on the day it was received.")
	RangeIncomplete     = quirks.Define("range-incomplete", "One end of the period is missing or invalid.")
	RangeEmpty          = quirks.Define("range-empty", "The period is empty.")
	RangeReversed       = quirks.Define("range-reversed", "The period ends before it begins.")
	RangeLong           = quirks.Define("range-long", "The period is longer than a day.")
	PolicyIncomplete    = quirks.Define("policy-incomplete", "A required part of the published policy is missing or empty.")
	PolicyDomainMissing = quirks.Define("policy-domain-missing", "The policy domain is missing; the From domain of the first record is used instead.")

	RecordIncomplete    = quirks.Define("record-incomplete", "An incomplete record was skipped.")
	CountMissing        = quirks.Define("count-missing", "A record without a count was skipped.")
	CountInvalid        = quirks.Define("count-invalid", "A record was skipped: its count is not a whole number from 0 to 2^53-1.")
	CountForm           = quirks.Define("count-form", "A count is written with a fraction of zeros or with commas.")
	SourceIPForm        = quirks.Define("source-ip-form", "A source address is not in canonical form.")
	SourceIPUnreadable  = quirks.Define("source-ip-unreadable", "An invalid source address was kept unchanged.")
	DispositionMissing  = quirks.Define("disposition-missing", "A record has no disposition.")
	DispositionPass     = quirks.Define("disposition-pass", "A record has the disposition pass, which only RFC 9990 defines.")
	EvaluatedMissing    = quirks.Define("evaluated-missing", "A record lacks the evaluated result of DKIM or SPF.")
	ReasonTypeMissing   = quirks.Define("reason-type-missing", "A reason has no type.")
	ReasonText          = quirks.Define("reason-text", "The text of a reason is outside its comment; it was used as the comment.")
	HeaderFromMissing   = quirks.Define("header-from-missing", "A record has no From domain.")
	EnvelopeFromMissing = quirks.Define("envelope-from-missing", "A record has no envelope sender, which RFC 7489 requires.")
	AuthResultsMissing  = quirks.Define("auth-results-missing", "A record has neither DKIM nor SPF results.")
	AuthDomainMissing   = quirks.Define("auth-domain-missing", "A DKIM or SPF result has no domain.")
	AuthResultMissing   = quirks.Define("auth-result-missing", "A DKIM or SPF result has no result.")
	SelectorMissing     = quirks.Define("selector-missing", "A DKIM result has no selector, which RFC 9990 requires.")
	SPFMissing          = quirks.Define("spf-missing", "A record has no SPF result, which RFC 7489 requires.")
	SPFSeveral          = quirks.Define("spf-several", "A record has several SPF results; RFC 9990 allows one.")
	SPFScope            = quirks.Define("spf-scope", "An SPF result has no scope, which RFC 7489 requires, or helo, which RFC 9990 does not define.")
	EvaluationDisagrees = quirks.Define("evaluation-disagrees", "The evaluated results of a record do not follow from its authentication results.")
)

// Quirks returns all quirks in order.
func Quirks() []Quirk { return quirks.All() }

// String returns the stable name of the quirk, such as "bare-ampersand".
func (q Quirk) String() string { return quirks.Name(q) }

// Meaning describes the quirk in one sentence.
func (q Quirk) Meaning() string { return quirks.Meaning(q) }

// QuirkCount is a quirk with its number of occurrences in a report.
type QuirkCount = quirk.Count[Quirk]

// tally counts quirks.
type tally struct{ quirk.Tally[Quirk] }
