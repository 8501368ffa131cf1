package foreign

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// jsonRecords describes the records of a report that were read so far.
type jsonRecords struct {
	found      bool
	begin, end int64
}

// jsonRecord is a record of an aggregate report.
type jsonRecord struct {
	Source struct {
		Address string `json:"ip_address"`
	}
	Count     json.Number
	Evaluated struct {
		Disposition, DKIM, SPF text
		Reasons                []jsonReason `json:"policy_override_reasons"`
	} `json:"policy_evaluated"`
	Alignment   struct{ DKIM, SPF *bool }
	Identifiers struct {
		HeaderFrom   text `json:"header_from"`
		EnvelopeFrom text `json:"envelope_from"`
		EnvelopeTo   text `json:"envelope_to"`
	}
	Results struct{ DKIM, SPF []authResult } `json:"auth_results"`
	Begin   string                           `json:"interval_begin"`
	End     string                           `json:"interval_end"`
}

// jsonReason is why a receiver did not apply the policy.
type jsonReason struct{ Type, Comment text }

// reasons returns the non-empty reasons of a list.
func reasons(list []jsonReason) (all []aggregate.Reason) {
	for _, r := range list {
		if r != (jsonReason{}) {
			all = append(all, aggregate.Reason{Type: string(r.Type), Comment: string(r.Comment)})
		}
	}
	return all
}

// authResult is a DKIM or SPF result.
type authResult struct {
	Domain      text
	Selector    text
	Scope       text
	Result      text
	HumanResult text `json:"human_result"`
}

// records reads the records of an aggregate report.
func (r *jsonReader) records(to *jsonRecords) error {
	to.found = true
	if t, err := r.decoder.Token(); err != nil || t != json.Delim('[') {
		return errors.Join(noEnd(err), r.out.invalid(r.line(), "records is not an array"))
	}
	for r.decoder.More() {
		r.limit.reset()
		var raw json.RawMessage
		if err := r.decoder.Decode(&raw); err != nil {
			return noEnd(err)
		}
		line := r.line()
		read, record, err := parseRecord(raw)
		if err != nil {
			if err := r.out.invalid(line, "a record cannot be used: %s", err); err != nil {
				return err
			}
			continue
		}
		to.period(read.Begin, read.End)
		if err := r.out.spill.add(record); err != nil {
			return err
		}
	}
	_, err := r.decoder.Token()
	return noEnd(err)
}

func parseRecord(raw []byte) (read jsonRecord, record aggregate.Record, err error) {
	if len(raw) > maxRecord {
		return read, record, errLongRecord
	}
	if err := json.Unmarshal(raw, &read); err != nil {
		return read, record, err
	}
	record, err = read.record()
	return read, record, err
}

var errLongRecord = fmt.Errorf("it is longer than %d bytes", maxRecord)

// period extends the period by that of a record. Both are in UTC, unlike those of the report.
func (j *jsonRecords) period(begin, end string) {
	if at, err := parseTime(begin); err == nil && (j.begin == 0 || at < j.begin) {
		j.begin = at
	}
	if at, err := parseTime(end); err == nil && at > j.end {
		j.end = at
	}
}

func (j jsonRecord) record() (aggregate.Record, error) {
	count, err := j.Count.Int64()
	if err != nil || count < 0 {
		return aggregate.Record{}, fmt.Errorf("count is %.40q, not a number of messages", j.Count.String())
	}
	e := j.Evaluated
	record := aggregate.Record{
		Source: j.Source.Address, Count: count, Disposition: aggregate.Policy(e.Disposition),
		DKIM: evaluated(e.DKIM, j.Alignment.DKIM), SPF: evaluated(e.SPF, j.Alignment.SPF),
		HeaderFrom: string(j.Identifiers.HeaderFrom), EnvelopeFrom: string(j.Identifiers.EnvelopeFrom), EnvelopeTo: string(j.Identifiers.EnvelopeTo),
		Reasons: reasons(e.Reasons),
	}
	for _, d := range j.Results.DKIM {
		if d.Selector == "none" { // it is missing
			d.Selector = ""
		}
		if d == (authResult{}) {
			continue
		}
		record.DKIMResults = append(record.DKIMResults, aggregate.DKIMResult{
			Domain: string(d.Domain), Selector: string(d.Selector), Result: aggregate.Result(d.Result), HumanResult: string(d.HumanResult),
		})
	}
	for _, s := range j.Results.SPF {
		if s == (authResult{}) {
			continue
		}
		record.SPFResults = append(record.SPFResults, aggregate.SPFResult{
			Domain: string(s.Domain), Scope: string(s.Scope), Result: aggregate.Result(s.Result), HumanResult: string(s.HumanResult),
		})
	}
	return record, nil
}

// evaluated returns the receiver's result, or else the alignment.
func evaluated(result text, aligned *bool) aggregate.Result {
	if result != "" || aligned == nil {
		return aggregate.Result(result)
	}
	if *aligned {
		return aggregate.ResultPass
	}
	return aggregate.ResultFail
}

// jsonHead is an aggregate report without its records.
type jsonHead struct {
	Metadata struct {
		OrgName      string `json:"org_name"`
		Email        text   `json:"org_email"`
		ExtraContact text   `json:"org_extra_contact_info"`
		ReportID     text   `json:"report_id"`
		Begin        string `json:"begin_date"`
		End          string `json:"end_date"`
		Errors       []text
		Generator    text
	} `json:"report_metadata"`
	Policy struct {
		Domain, ADKIM, ASPF, P, SP, NP text
		Percent                        text `json:"pct"`
		FailureOptions                 text `json:"fo"`
		Testing                        text
		DiscoveryMethod                text `json:"discovery_method"`
	} `json:"policy_published"`
}

// text is a string, or a number as one. It may be in an object as "#text", which parsedmarc
// writes for XML elements with attributes. Other values are "".
type text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(b []byte) error {
	*t = ""
	switch b[0] {
	case '"':
		var s string
		err := json.Unmarshal(b, &s)
		*t = text(s)
		return err
	case '{':
		var element struct {
			Text string `json:"#text"`
		}
		_ = json.Unmarshal(b, &element) // it is "" then
		*t = text(element.Text)
	case '[', 'n': // null
	default:
		*t = text(b)
	}
	return nil
}

// texts returns the non-empty texts of a list.
func texts(list []text) (all []string) {
	for _, t := range list {
		if t != "" {
			all = append(all, string(t))
		}
	}
	return all
}

// report yields the report of an object.
func (r *jsonReader) report(line int, members map[string]json.RawMessage, records *jsonRecords) error {
	whole, err := json.Marshal(members)
	if err != nil {
		return err
	}
	var write Write
	switch {
	case bytes.Count(whole, []byte(",")) > maxItems:
		err = fmt.Errorf("it has more than %d items", maxItems)
	case records.found:
		write, err = r.aggregate(whole, records)
	case members["policies"] != nil:
		write, err = tlsReport(whole)
	case members["feedback_type"] != nil || members["reported_domain"] != nil:
		write, err = failureReport(whole)
	default:
		err = errors.New("it has neither records, policies nor a feedback_type")
	}
	if err != nil {
		return r.out.invalid(line, "the object that begins here is not a report: %s", err)
	}
	return r.out.report(write)
}

func (r *jsonReader) aggregate(whole []byte, records *jsonRecords) (Write, error) {
	var head jsonHead
	if err := json.Unmarshal(whole, &head); err != nil {
		return nil, err
	}
	m, p := head.Metadata, head.Policy
	report := aggregate.Report{
		Metadata: aggregate.Metadata{
			OrgName: m.OrgName, Email: string(m.Email), ExtraContact: string(m.ExtraContact), ReportID: string(m.ReportID), Errors: texts(m.Errors), Generator: string(m.Generator),
			Begin: records.begin, End: records.end,
		},
		Policy: aggregate.PublishedPolicy{
			Domain: string(p.Domain), P: aggregate.Policy(p.P), SP: aggregate.Policy(p.SP), NP: aggregate.Policy(p.NP), ADKIM: string(p.ADKIM), ASPF: string(p.ASPF),
			Percent: string(p.Percent), FailureOptions: string(p.FailureOptions), Testing: string(p.Testing), DiscoveryMethod: string(p.DiscoveryMethod),
		},
	}
	if records.begin == 0 {
		var err error
		if report.Metadata.Begin, err = parseTime(m.Begin); err != nil {
			return nil, err
		}
		if report.Metadata.End, err = parseTime(m.End); err != nil {
			return nil, err
		}
	}
	return r.out.spill.aggregate(report), nil
}

// jsonTLS is a TLS report.
type jsonTLS struct {
	Organization text   `json:"organization_name"`
	Begin        string `json:"begin_date"`
	End          string `json:"end_date"`
	Contact      any    `json:"contact_info"` // a text or a list
	ReportID     text   `json:"report_id"`
	Policies     []struct {
		Domain     text   `json:"policy_domain"`
		Type       text   `json:"policy_type"`
		Strings    []text `json:"policy_strings"`
		MXHosts    []text `json:"mx_host_patterns"`
		Successful text   `json:"successful_session_count"`
		Failed     text   `json:"failed_session_count"`
		Failures   []struct {
			ResultType  text `json:"result_type"`
			Failed      text `json:"failed_session_count"`
			SendingIP   text `json:"sending_mta_ip"`
			ReceivingIP text `json:"receiving_ip"`
			MXHostname  text `json:"receiving_mx_hostname"`
			MXHelo      text `json:"receiving_mx_helo"`
			Information text `json:"additional_info_uri"`
			ReasonCode  text `json:"failure_reason_code"`
		} `json:"failure_details"`
	}
}

func tlsReport(whole []byte) (Write, error) {
	var read jsonTLS
	if err := json.Unmarshal(whole, &read); err != nil {
		return nil, err
	}
	report := tlsrpt.Report{OrgName: string(read.Organization), ReportID: string(read.ReportID)}
	switch contact := read.Contact.(type) {
	case string:
		report.ContactInfo = contact
	case []any:
		report.ContactInfo = strings.Trim(fmt.Sprint(contact...), "[]")
	}
	var err error
	if report.Begin, err = parseTime(read.Begin); err != nil {
		return nil, err
	}
	if report.End, err = parseTime(read.End); err != nil {
		return nil, err
	}
	for _, p := range read.Policies {
		policy := tlsrpt.Policy{Type: tlsrpt.PolicyType(p.Type), Domain: string(p.Domain), Strings: texts(p.Strings), MXHosts: texts(p.MXHosts)}
		var wrong [2]error
		policy.Successful, wrong[0] = count(string(p.Successful))
		policy.Failed, wrong[1] = count(string(p.Failed))
		if err := errors.Join(wrong[:]...); err != nil {
			return nil, err
		}
		for _, f := range p.Failures {
			failed, err := count(string(f.Failed))
			if err != nil {
				return nil, err
			}
			policy.Failures = append(policy.Failures, tlsrpt.Failure{
				ResultType: tlsrpt.ResultType(f.ResultType), SendingMTAIP: string(f.SendingIP), ReceivingMXHostname: string(f.MXHostname), ReceivingMXHelo: string(f.MXHelo),
				ReceivingIP: string(f.ReceivingIP), FailedSessions: failed, AdditionalInformation: string(f.Information), ReasonCode: string(f.ReasonCode),
			})
		}
		report.Policies = append(report.Policies, policy)
	}
	return func(w io.Writer) error { return tlsrpt.Render(w, report) }, nil
}

// count returns a number of messages or sessions; "" is 0.
func count(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%.40q is not a number of messages or sessions", text)
	}
	return n, nil
}

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
