package tlsrpt

// Rejection is the reason why a document is rejected.
type Rejection string

const (
	// RejectedEmpty is an empty document.
	RejectedEmpty Rejection = "empty"
	// RejectedXML is XML or HTML, possibly an aggregate report.
	RejectedXML Rejection = "xml"
	// RejectedNotJSON is any other document that does not start like a JSON object.
	RejectedNotJSON Rejection = "not-json"
	// RejectedOtherJSON is a JSON document that is not a TLS report.
	RejectedOtherJSON Rejection = "other-json"
	// RejectedDamaged is a damaged report without a complete policy.
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

func (e *RejectedError) Error() string { return "TLS report rejected: " + e.Detail }

func reject(why Rejection, detail string) error {
	return &RejectedError{Why: why, Detail: detail}
}
