package shape

import "github.com/dmarcd/dmarcd"

// eventV1 is what an event says beside its kind.
type eventV1 struct {
	V            int    `json:"v"`
	Before       string `json:"before,omitempty"`
	After        string `json:"after,omitempty"`
	Finding      string `json:"finding,omitempty"`
	Report       int64  `json:"report,omitempty"`
	Organization string `json:"organization,omitempty"`
	Webhook      int64  `json:"webhook,omitempty"`
	Reason       string `json:"reason,omitempty"`

	Level       string  `json:"level,omitempty"`
	Day         int32   `json:"day,omitempty"`
	Subject     string  `json:"subject,omitempty"`
	SubjectName string  `json:"subject_name,omitempty"`
	Class       string  `json:"class,omitempty"`
	Messages    int64   `json:"messages,omitempty"`
	Observed    float64 `json:"observed,omitempty"`
	Usual       float64 `json:"usual,omitempty"`
}

// EncodeEvent returns the document of an event.
func EncodeEvent(e dmarcd.EventData) string {
	return encode(eventV1{
		V: 1, Before: e.Before, After: e.After, Finding: e.Finding,
		Report: int64(e.Report), Organization: e.Organization, Webhook: int64(e.Webhook), Reason: e.Reason,
		Level: string(e.Level), Day: int32(e.Day), Subject: e.Subject, SubjectName: e.SubjectName, Class: string(e.SubjectClass),
		Messages: e.Messages, Observed: e.Observed, Usual: e.Usual,
	})
}

// DecodeEvent reads what EncodeEvent of this or an earlier version returned.
func DecodeEvent(document string) (dmarcd.EventData, error) {
	return decode[eventV1]("event", document)
}

func (s eventV1) value() dmarcd.EventData {
	return dmarcd.EventData{
		Before: s.Before, After: s.After, Finding: s.Finding,
		Report: dmarcd.ReportID(s.Report), Organization: s.Organization, Webhook: dmarcd.WebhookID(s.Webhook), Reason: s.Reason,
		Level: dmarcd.Level(s.Level), Day: dmarcd.Day(s.Day), Subject: s.Subject, SubjectName: s.SubjectName, SubjectClass: dmarcd.Class(s.Class),
		Measured: dmarcd.Measured{Messages: s.Messages, Observed: s.Observed, Usual: s.Usual},
	}
}
