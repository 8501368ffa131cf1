package aggregate

// Refusal is why a document is not taken.
type Refusal string

// The refusals.
const (
	// RefusedEmpty is a document without anything in it.
	RefusedEmpty Refusal = "empty"
	// RefusedUnused is the word "unused", which some reporters send where they have
	// nothing to report.
	RefusedUnused Refusal = "unused"
	// RefusedJSON is a JSON text, perhaps a TLS report.
	RefusedJSON Refusal = "json"
	// RefusedHTML is a web page.
	RefusedHTML Refusal = "html"
	// RefusedNotXML is any other document without an element.
	RefusedNotXML Refusal = "not-xml"
	// RefusedOtherXML is an XML document without a feedback element.
	RefusedOtherXML Refusal = "other-xml"
	// RefusedIncomplete is a report without a time range or a policy domain, so that
	// nothing could be said of its records.
	RefusedIncomplete Refusal = "incomplete"
	// RefusedDamaged is a damaged report without a complete record.
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
func (e *RefusedError) Error() string { return "aggregate report refused: " + e.Detail }

func refuse(why Refusal, detail string) error {
	return &RefusedError{Why: why, Detail: detail}
}
