package dmarc

// Kind is a type of problem. The values are stable.
type Kind string

const (
	// MissingTag: a required tag is missing; only p is required.
	MissingTag Kind = "missing-tag"
	// InvalidValue: the value of a known tag is invalid. The default applies, but see
	// State for p, sp and np.
	InvalidValue Kind = "invalid-value"
	// UnknownTag: receivers ignore the tag.
	UnknownTag Kind = "unknown-tag"
	// HistoricTag: a tag of RFC 7489 (pct, rf, ri) that RFC 9989 removed.
	HistoricTag Kind = "historic-tag"
	// DuplicateTag: the tag is repeated; the first value is used as a guess.
	DuplicateTag Kind = "duplicate-tag"
	// TagCase: the tag name is not in lower case. RFC 9989 is inconsistent on whether that
	// matters.
	TagCase Kind = "tag-case"
	// MalformedElement: the text between two semicolons is not of the form name=value.
	MalformedElement Kind = "malformed-element"
	// EmptyElement: two consecutive semicolons.
	EmptyElement Kind = "empty-element"
	// TooManyTags: only the first hundred tags were parsed.
	TooManyTags Kind = "too-many-tags"
	// BadURI: an entry of rua or ruf is empty, not a URI, or not a mail address.
	BadURI Kind = "bad-uri"
	// UnsupportedScheme: the URI is valid, but receivers have to support mailto only.
	UnsupportedScheme Kind = "unsupported-scheme"
	// SizeSuffix: the URI ends in a size limit, which RFC 9989 ignores.
	SizeSuffix Kind = "size-suffix"
	// DuplicateURI: the destination is already listed.
	DuplicateURI Kind = "duplicate-uri"
	// TooManyURIs: RFC 7489 requires receivers to support two destinations only.
	TooManyURIs Kind = "too-many-uris"
	// UnusedFailureOptions: fo is ignored without ruf (RFC 9989 §4.7).
	UnusedFailureOptions Kind = "fo-without-ruf"
	// FailureReportsOnPSD: a public suffix domain must not request failure reports (RFC
	// 9991 §2).
	FailureReportsOnPSD Kind = "ruf-on-psd"
)

// Problem is a problem of a record.
type Problem struct {
	Kind Kind
	// Tag is the name of the affected tag in lower case, or "".
	Tag string
	// Text is the affected part of the record: the value, the element, the URI, or the tag
	// name as published.
	Text string
}
