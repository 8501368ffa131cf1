package tlsrpt

// Refusal is why a document is not taken.
type Refusal string

// The refusals.
const (
	// RefusedEmpty is a document without anything in it.
	RefusedEmpty Refusal = "empty"
	// RefusedXML is an XML document or a web page, perhaps an aggregate report.
	RefusedXML Refusal = "xml"
	// RefusedNotJSON is any other document that does not begin as a JSON object.
	RefusedNotJSON Refusal = "not-json"
	// RefusedOtherJSON is a JSON document that is no TLS report.
	RefusedOtherJSON Refusal = "other-json"
	// RefusedDamaged is a damaged report without a complete policy.
	RefusedDamaged Refusal = "damaged"
	// RefusedLimit is a report that exceeds one of the limits.
	RefusedLimit Refusal = "limit"
)

// RefusedError says that a document is no report, or none that can be used.
type RefusedError struct {
	Why Refusal
	// Detail is the reason in words.
	Detail string
}

// Error returns the reason in words.
func (e *RefusedError) Error() string { return "TLS report refused: " + e.Detail }

func refuse(why Refusal, detail string) error {
	return &RefusedError{Why: why, Detail: detail}
}
