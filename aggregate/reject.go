package aggregate

// Rejection is the reason why a document is rejected.
type Rejection string

const (
	// RejectedEmpty is an empty document.
	RejectedEmpty Rejection = "empty"
	// RejectedUnused is the word "unused", which some reporters send if they have nothing
	// to report.
	RejectedUnused Rejection = "unused"
	// RejectedJSON is JSON, possibly a TLS report.
	RejectedJSON Rejection = "json"
	// RejectedHTML is a web page.
	RejectedHTML Rejection = "html"
	// RejectedNotXML is any other document without elements.
	RejectedNotXML Rejection = "not-xml"
	// RejectedOtherXML is an XML document without a feedback element.
	RejectedOtherXML Rejection = "other-xml"
	// RejectedIncomplete is a report without a period or a policy domain.
	RejectedIncomplete Rejection = "incomplete"
	// RejectedDamaged is a damaged report without a complete record.
	RejectedDamaged Rejection = "damaged"
	// RejectedLimit is a report that exceeds one of the limits.
	RejectedLimit Rejection = "limit"
)

// RejectedError means that a document is not a report, or not a usable one.
type RejectedError struct {
	Why Rejection
	// Detail explains the reason.
	Detail string
}

func (e *RejectedError) Error() string { return "aggregate report rejected: " + e.Detail }

func reject(why Rejection, detail string) error {
	return &RejectedError{Why: why, Detail: detail}
}
