package aggregate

import "github.com/dmarcd/dmarcd/internal/quirk"

// Quirk is a kind of deviation from the specifications. The zero value means none.
type Quirk uint8

// The quirks. Their names are stable: they are stored and part of the API.
var (
	quirks quirk.Table[Quirk]

	ByteOrderMark       = quirks.Define("byte_order_mark", "The document starts with a byte order mark.")
	OtherEncoding       = quirks.Define("other_encoding", "The document is not in UTF-8.")
	EncodingMislabelled = quirks.Define("encoding_mislabelled", "The declared encoding is wrong.")
	EncodingUnknown     = quirks.Define("encoding_unknown", "The declared encoding is unknown; UTF-8 was assumed.")
	BadBytes            = quirks.Define("bad_bytes", "Invalid bytes were replaced.")
	ControlCharacters   = quirks.Define("control_characters", "Characters that XML does not allow were removed.")

	DeclarationMissing = quirks.Define("declaration_missing", "There is no XML declaration.")
	XMLVersion         = quirks.Define("xml_version", "The XML version is not 1.0.")
	LeadingJunk        = quirks.Define("leading_junk", "There is content before the XML declaration or the root element.")
	TrailingJunk       = quirks.Define("trailing_junk", "There is content after the report.")
	DocumentType       = quirks.Define("document_type", "There is a document type declaration, which was ignored.")
	UnknownEntity      = quirks.Define("unknown_entity", "An undefined entity was kept as text.")
	BareAmpersand      = quirks.Define("bare_ampersand", "An ampersand was not escaped.")
	BareLessThan       = quirks.Define("bare_less_than", "A less-than sign was not escaped.")
	MalformedTag       = quirks.Define("malformed_tag", "The end of a tag or declaration had to be guessed.")
	MismatchedTags     = quirks.Define("mismatched_tags", "An element was not closed, or was closed with another name.")
	Truncated          = quirks.Define("truncated", "The document is truncated.")
	StrayWrapper       = quirks.Define("stray_wrapper", "Unexpected elements enclose the report or parts of it.")
	StrayText          = quirks.Define("stray_text", "Text between elements was ignored.")
	MarkupInText       = quirks.Define("markup_in_text", "An element within a value was ignored.")

	NamespaceUnknown = quirks.Define("namespace_unknown", "The namespace is not that of a DMARC report.")
	NamespaceDraft   = quirks.Define("namespace_draft", "The namespace is that of a draft.")
	NamespaceMissing = quirks.Define("namespace_missing", "The report has elements of RFC 9990 but not its namespace.")
	ElementCase      = quirks.Define("element_case", "The name of an element contains upper-case letters.")
	ElementAlias     = quirks.Define("element_alias", "An element has a nonstandard name.")
	ElementUnknown   = quirks.Define("element_unknown", "An unknown element was ignored.")
	ElementForeign   = quirks.Define("element_foreign", "An element of another namespace was ignored.")
	ElementRepeated  = quirks.Define("element_repeated", "An element that may occur only once is repeated; the first one applies.")
	ElementsDropped  = quirks.Define("elements_dropped", "Results, reasons or errors beyond the limit were ignored.")

	ValuePadded   = quirks.Define("value_padded", "A value is surrounded by blanks.")
	ValueCase     = quirks.Define("value_case", "A keyword contains upper-case letters.")
	ValueAlias    = quirks.Define("value_alias", "A nonstandard keyword was translated, such as hardfail to fail.")
	ValueUnknown  = quirks.Define("value_unknown", "An unknown keyword was kept unchanged.")
	DomainCase    = quirks.Define("domain_case", "A domain contains upper-case letters.")
	DomainForm    = quirks.Define("domain_form", "A domain is written as an address or with a trailing dot.")
	DomainULabels = quirks.Define("domain_u_labels", "A domain is written in U-labels; it was converted to A-labels.")

	VersionMissing      = quirks.Define("version_missing", "There is no version.")
	VersionUnusual      = quirks.Define("version_unusual", "The version is not 1.0.")
	OrgNameMissing      = quirks.Define("org_name_missing", "The name of the reporter is missing; the domain of its address is used instead.")
	EmailMissing        = quirks.Define("email_missing", "The address of the reporter is missing.")
	ReportIDMissing     = quirks.Define("report_id_missing", "The report has no id.")
	ReportIDForm        = quirks.Define("report_id_form", "The report id is in brackets or contains invalid characters.")
	TimeFraction        = quirks.Define("time_fraction", "A time has a fraction of a second.")
	TimeMilliseconds    = quirks.Define("time_milliseconds", "A time is in milliseconds.")
	TimeText            = quirks.Define("time_text", "A time is a date instead of a number of seconds.")
	TimeImplausible     = quirks.Define("time_implausible", "A time is before 2011 or more than two days in the future; if it is the start, the report counts on the day it was received.")
	RangeIncomplete     = quirks.Define("range_incomplete", "One end of the period is missing or invalid.")
	RangeEmpty          = quirks.Define("range_empty", "The period is empty.")
	RangeReversed       = quirks.Define("range_reversed", "The period ends before it begins.")
	RangeLong           = quirks.Define("range_long", "The period is longer than a day.")
	PolicyIncomplete    = quirks.Define("policy_incomplete", "A required part of the published policy is missing or empty.")
	PolicyDomainMissing = quirks.Define("policy_domain_missing", "The policy domain is missing; the From domain of the first record is used instead.")

	RecordIncomplete    = quirks.Define("record_incomplete", "An incomplete record was skipped.")
	CountMissing        = quirks.Define("count_missing", "A record without a count was skipped.")
	CountInvalid        = quirks.Define("count_invalid", "A record was skipped: its count is not a whole number from 0 to 2^53-1.")
	CountForm           = quirks.Define("count_form", "A count is written with a fraction of zeros or with commas.")
	SourceIPForm        = quirks.Define("source_ip_form", "A source address is not in canonical form.")
	SourceIPUnreadable  = quirks.Define("source_ip_unreadable", "An invalid source address was kept unchanged.")
	DispositionMissing  = quirks.Define("disposition_missing", "A record has no disposition.")
	DispositionPass     = quirks.Define("disposition_pass", "A record has the disposition pass, which only RFC 9990 defines.")
	EvaluatedMissing    = quirks.Define("evaluated_missing", "A record lacks the evaluated result of DKIM or SPF.")
	ReasonTypeMissing   = quirks.Define("reason_type_missing", "A reason has no type.")
	ReasonText          = quirks.Define("reason_text", "The text of a reason is outside its comment; it was used as the comment.")
	HeaderFromMissing   = quirks.Define("header_from_missing", "A record has no From domain.")
	EnvelopeFromMissing = quirks.Define("envelope_from_missing", "A record has no envelope sender, which RFC 7489 requires.")
	AuthResultsMissing  = quirks.Define("auth_results_missing", "A record has neither DKIM nor SPF results.")
	AuthDomainMissing   = quirks.Define("auth_domain_missing", "A DKIM or SPF result has no domain.")
	AuthResultMissing   = quirks.Define("auth_result_missing", "A DKIM or SPF result has no result.")
	SelectorMissing     = quirks.Define("selector_missing", "A DKIM result has no selector, which RFC 9990 requires.")
	SPFMissing          = quirks.Define("spf_missing", "A record has no SPF result, which RFC 7489 requires.")
	SPFSeveral          = quirks.Define("spf_several", "A record has several SPF results; RFC 9990 allows one.")
	SPFScope            = quirks.Define("spf_scope", "An SPF result has no scope, which RFC 7489 requires, or helo, which RFC 9990 does not define.")
	EvaluationDisagrees = quirks.Define("evaluation_disagrees", "The evaluated results of a record do not follow from its authentication results.")
)

// Quirks returns all quirks in order.
func Quirks() []Quirk { return quirks.All() }

// String returns the stable name of the quirk, such as "bare_ampersand".
func (q Quirk) String() string { return quirks.Name(q) }

// Meaning describes the quirk in one sentence.
func (q Quirk) Meaning() string { return quirks.Meaning(q) }

// QuirkCount is a quirk with its number of occurrences in a report.
type QuirkCount = quirk.Count[Quirk]

// tally counts quirks.
type tally struct{ quirk.Tally[Quirk] }
