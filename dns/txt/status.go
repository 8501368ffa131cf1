package txt

import "github.com/dmarcd/dmarcd/dns"

// Status tells how things stand at a name that is to have one record.
type Status uint8

const (
	// Inconclusive means that the question had no usable answer. Nothing is stated
	// about the record.
	Inconclusive Status = iota
	// OK means that there is one record, and that it is valid.
	OK
	// None means that there is no record.
	None
	// Multiple means that there are several records.
	Multiple
	// Invalid means that there is one record, and that it is not valid.
	Invalid
)

// String returns the status in one word.
func (s Status) String() string {
	switch s {
	case OK:
		return "ok"
	case None:
		return "none"
	case Multiple:
		return "multiple"
	case Invalid:
		return "invalid"
	default:
		return "inconclusive"
	}
}

// StatusOf tells how things stand at a name, given what makes a single record valid.
func StatusOf[R any](f Found[R], valid func(R) bool) Status {
	switch {
	case f.Answer.Outcome == dns.Inconclusive:
		return Inconclusive
	case len(f.Records) == 0:
		return None
	case len(f.Records) > 1:
		return Multiple
	case valid(f.Records[0]):
		return OK
	default:
		return Invalid
	}
}
