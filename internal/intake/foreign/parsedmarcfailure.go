package foreign

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"time"
)

// failureFields is a failure report, by the names of its fields.
type failureFields struct {
	FeedbackType string `json:"feedback_type"`
	UserAgent    string `json:"user_agent"`
	Version      text
	EnvelopeID   string   `json:"original_envelope_id"`
	MailFrom     string   `json:"original_mail_from"`
	RcptTo       string   `json:"original_rcpt_to"`
	Arrival      string   `json:"arrival_date"`
	ArrivalUTC   string   `json:"arrival_date_utc"`
	MessageID    string   `json:"message_id"`
	Results      string   `json:"authentication_results"`
	Delivery     string   `json:"delivery_result"`
	AuthFailure  []string `json:"auth_failure"`
	Mechanisms   []string `json:"authentication_mechanisms"`
	DKIMDomain   string   `json:"dkim_domain"`
	DKIMIdentity string   `json:"dkim_identity"`
	DKIMSelector string   `json:"dkim_selector"`
	SPFDNS       string   `json:"spf_dns"`
	Domain       string   `json:"reported_domain"`
	MTA          string   `json:"reporting_mta"`
	Incidents    string
	Source       struct {
		Address string `json:"ip_address"`
	}
	Sample      string
	HeadersOnly bool `json:"sample_headers_only"`
	Subject     string
}

func failureReport(whole []byte) (Write, error) {
	var f failureFields
	if err := json.Unmarshal(whole, &f); err != nil {
		return nil, err
	}
	return f.write, nil
}

// write writes a mail with the report (RFC 6591, RFC 9991).
func (f failureFields) write(w io.Writer) error {
	const boundary = "dmarcd-foreign-report"
	var b bytes.Buffer
	field := func(name, value string) {
		if value = strings.Join(strings.Fields(value), " "); value != "" {
			b.WriteString(name + ": " + value + "\r\n")
		}
	}
	date := f.Arrival
	if at, err := parseTime(f.ArrivalUTC); err == nil {
		date = time.Unix(at, 0).UTC().Format(time.RFC1123Z)
	}
	field("From", "failure-report@parsedmarc.invalid")
	field("Date", date)
	field("Subject", "DMARC failure report")
	field("MIME-Version", "1.0")
	field("Content-Type", `multipart/report; report-type=feedback-report; boundary="`+boundary+`"`)
	b.WriteString("\r\n--" + boundary + "\r\nContent-Type: message/feedback-report\r\n\r\n")
	field("Feedback-Type", f.FeedbackType)
	field("User-Agent", f.UserAgent)
	field("Version", string(f.Version))
	field("Original-Envelope-Id", f.EnvelopeID)
	field("Original-Mail-From", f.MailFrom)
	field("Original-Rcpt-To", f.RcptTo)
	field("Arrival-Date", date)
	field("Authentication-Results", f.Results)
	field("Delivery-Result", f.Delivery)
	field("Auth-Failure", strings.Join(f.AuthFailure, ","))
	field("Identity-Alignment", strings.Join(f.Mechanisms, ",")) // if it was none or missing is unknown
	field("DKIM-Domain", f.DKIMDomain)
	field("DKIM-Identity", f.DKIMIdentity)
	field("DKIM-Selector", f.DKIMSelector)
	field("SPF-DNS", f.SPFDNS)
	field("Reported-Domain", f.Domain)
	field("Reporting-MTA", f.MTA)
	field("Incidents", f.Incidents)
	field("Source-IP", f.Source.Address)
	kind := "message/rfc822"
	if f.HeadersOnly || f.Sample == "" {
		kind = "text/rfc822-headers"
	}
	b.WriteString("\r\n--" + boundary + "\r\nContent-Type: " + kind + "\r\n\r\n")
	if f.Sample != "" {
		sample := strings.ReplaceAll(strings.ReplaceAll(f.Sample, "\r\n", "\n"), "\n", "\r\n")
		b.WriteString(strings.ReplaceAll(sample, "--"+boundary, "--"))
	} else {
		field("From", f.MailFrom)
		field("Message-ID", f.MessageID)
		field("Subject", f.Subject)
	}
	b.WriteString("\r\n--" + boundary + "--\r\n")
	_, err := b.WriteTo(w)
	return err
}
