package dmarc

// Kind names a sort of problem. The values are stable.
type Kind string

const (
	// MissingTag: the tag should be there and is not; only p is asked for.
	MissingTag Kind = "missing-tag"
	// InvalidValue: the value of a known tag breaks its grammar. The default
	// applies, but see State for p, sp and np.
	InvalidValue Kind = "invalid-value"
	// UnknownTag: receivers ignore the tag.
	UnknownTag Kind = "unknown-tag"
	// HistoricTag: RFC 7489 had the tag (pct, rf, ri), RFC 9989 removed it.
	HistoricTag Kind = "historic-tag"
	// DuplicateTag: the tag appears again; the first value is shown as a guess.
	DuplicateTag Kind = "duplicate-tag"
	// TagCase: the name of the tag is not in lower case. RFC 9989 contradicts
	// itself on whether that matters.
	TagCase Kind = "tag-case"
	// MalformedElement: the text between two semicolons is no name=value.
	MalformedElement Kind = "malformed-element"
	// EmptyElement: there is nothing between two semicolons.
	EmptyElement Kind = "empty-element"
	// TooManyTags: only the first hundred tags were read.
	TooManyTags Kind = "too-many-tags"
	// BadURI: an entry of rua or ruf is empty, no URI, or no mail address.
	BadURI Kind = "bad-uri"
	// UnsupportedScheme: the URI is valid, but receivers need only know mailto.
	UnsupportedScheme Kind = "unsupported-scheme"
	// SizeSuffix: the URI ends in a size limit, which RFC 9989 ignores.
	SizeSuffix Kind = "size-suffix"
	// DuplicateURI: the destination is listed before.
	DuplicateURI Kind = "duplicate-uri"
	// TooManyURIs: RFC 7489 obliges receivers to serve no more than two.
	TooManyURIs Kind = "too-many-uris"
	// UnusedFailureOptions: fo is ignored where there is no ruf (RFC 9989 §4.7).
	UnusedFailureOptions Kind = "fo-without-ruf"
	// FailureReportsOnPSD: a domain under which others register names must not
	// ask for failure reports (RFC 9991 §2).
	FailureReportsOnPSD Kind = "ruf-on-psd"
)

// Problem is one thing that is wrong with, or worth saying about, a record.
type Problem struct {
	Kind Kind
	// Tag is the name of the tag concerned in lower case, "" where there is none.
	Tag string
	// Text is the part of the record concerned: the value, the element, the URI,
	// or the name of the tag as it was written.
	Text string
}
