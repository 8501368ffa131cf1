package tlsrpt

import (
	"encoding/json"
	"io"
	"time"
)

// The JSON objects of RFC 8460 §4.4. Optional members that are absent are omitted;
// required ones are empty, so that every document is recognizable as a report.
type (
	reportDocument struct {
		Organization string           `json:"organization-name"`
		Range        *rangeDocument   `json:"date-range,omitempty"`
		Contact      string           `json:"contact-info"`
		ReportID     string           `json:"report-id"`
		Policies     []*entryDocument `json:"policies"`
	}
	rangeDocument struct {
		Start string `json:"start-datetime"`
		End   string `json:"end-datetime"`
	}
	entryDocument struct {
		Policy   policyDocument    `json:"policy"`
		Summary  summaryDocument   `json:"summary"`
		Failures []failureDocument `json:"failure-details,omitempty"`
	}
	policyDocument struct {
		Type    PolicyType `json:"policy-type"`
		Strings []string   `json:"policy-string,omitempty"`
		Domain  string     `json:"policy-domain"`
		MXHosts []string   `json:"mx-host,omitempty"`
	}
	summaryDocument struct {
		Successful int64 `json:"total-successful-session-count"`
		Failed     int64 `json:"total-failure-session-count"`
	}
	failureDocument struct {
		ResultType    ResultType `json:"result-type"`
		SendingIP     string     `json:"sending-mta-ip,omitempty"`
		ReceivingHost string     `json:"receiving-mx-hostname,omitempty"`
		ReceivingHelo string     `json:"receiving-mx-helo,omitempty"`
		ReceivingIP   string     `json:"receiving-ip,omitempty"`
		Sessions      int64      `json:"failed-session-count"`
		Information   string     `json:"additional-information,omitempty"`
		Reason        string     `json:"failure-reason-code,omitempty"`
	}
)

// Render writes the report as an RFC 8460 document. Reading it returns a report with the
// same key and content.
func Render(w io.Writer, report Report) error {
	document := reportDocument{
		Organization: report.OrgName,
		Contact:      report.ContactInfo,
		ReportID:     report.ReportID,
		Policies:     make([]*entryDocument, len(report.Policies)),
	}
	if report.Begin != 0 || report.End != 0 {
		document.Range = &rangeDocument{Start: renderTime(report.Begin), End: renderTime(report.End)}
	}
	for i := range report.Policies {
		document.Policies[i] = renderPolicy(&report.Policies[i])
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(document)
}

func renderTime(seconds int64) string { return time.Unix(seconds, 0).UTC().Format(time.RFC3339) }

func renderPolicy(p *Policy) *entryDocument {
	entry := &entryDocument{
		Policy:   policyDocument{Type: p.Type, Strings: p.Strings, Domain: p.Domain, MXHosts: p.MXHosts},
		Summary:  summaryDocument{Successful: p.Successful, Failed: p.Failed},
		Failures: make([]failureDocument, len(p.Failures)),
	}
	for i, f := range p.Failures {
		entry.Failures[i] = failureDocument{
			ResultType: f.ResultType, SendingIP: f.SendingMTAIP, ReceivingHost: f.ReceivingMXHostname,
			ReceivingHelo: f.ReceivingMXHelo, ReceivingIP: f.ReceivingIP, Sessions: f.FailedSessions,
			Information: f.AdditionalInformation, Reason: f.ReasonCode,
		}
	}
	return entry
}
