package failure

// Rejection is the reason why a message is rejected.
type Rejection string

const (
	// RejectedNone is a message without a feedback report.
	RejectedNone Rejection = "no feedback report"
	// RejectedOther is a feedback report that is not about authentication, such as a spam
	// complaint.
	RejectedOther Rejection = "other feedback report"
)

// RejectedError means that a message is not a failure report.
type RejectedError struct {
	Why Rejection
	// FeedbackType is the type of another feedback report, in lower case.
	FeedbackType string
}

func (e *RejectedError) Error() string {
	if e.FeedbackType == "" {
		return string(e.Why)
	}
	return string(e.Why) + ": " + e.FeedbackType
}
