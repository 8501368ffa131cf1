package txt

import "github.com/dmarcd/dmarcd/dns"

// Status is the state of a name that should have one record.
type Status uint8

const (
	// Inconclusive means that the query failed. Nothing is known about the record.
	Inconclusive Status = iota
	// OK means that there is one valid record.
	OK
	// None means that there is no record.
	None
	// Multiple means that there are several records.
	Multiple
	// Invalid means that there is one invalid record.
	Invalid
)

var statusWords = [...]string{Inconclusive: "inconclusive", OK: "ok", None: "none", Multiple: "multiple", Invalid: "invalid"}

// String returns the status in one word.
func (s Status) String() string { return statusWords[s] }

// StatusOf returns the status of a name; valid reports whether a single record is valid.
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
