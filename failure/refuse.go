package failure

// Refusal is why a message is not taken.
type Refusal string

// The refusals.
const (
	// RefusedNone is a message without a feedback report.
	RefusedNone Refusal = "no feedback report"
	// RefusedOther is a feedback report that is not about authentication, such
	// as a complaint about spam.
	RefusedOther Refusal = "other feedback report"
)

// RefusedError says that a message is no failure report.
type RefusedError struct {
	Why Refusal
	// FeedbackType is the type of an other feedback report, in lower case.
	FeedbackType string
}

// Error returns the reason in words.
func (e *RefusedError) Error() string {
	if e.FeedbackType == "" {
		return string(e.Why)
	}
	return string(e.Why) + ": " + e.FeedbackType
}
