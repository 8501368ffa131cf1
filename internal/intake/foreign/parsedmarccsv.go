package foreign

import (
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// maxTLSRows limits the rows of one TLS report.
const maxTLSRows = 100_000

// csvRow is a row by the names of its columns.
type csvRow struct {
	columns map[string]int
	fields  []string
	line    int
}

func (r csvRow) text(column string) string {
	if i, ok := r.columns[column]; ok && i < len(r.fields) {
		return r.fields[i]
	}
	return ""
}

// list returns the items of a column.
func (r csvRow) list(column, separator string) []string {
	text := r.text(column)
	if text == "" {
		return nil
	}
	return strings.Split(text, separator)
}

// readCSV reads a table of parsedmarc. Its columns tell which of the three it is.
func readCSV(in io.Reader, out output) error {
	limit := &limited{in: in, most: maxRecord}
	limit.reset()
	reader := csv.NewReader(limit)
	reader.ReuseRecord, reader.FieldsPerRecord, reader.LazyQuotes = true, -1, true
	header, err := reader.Read()
	if err != nil {
		return csvError(err, out)
	}
	columns, width := make(map[string]int, len(header)), len(header)
	for i, name := range header {
		columns[strings.ToLower(strings.TrimSpace(name))] = i
	}
	has := func(name string) bool { _, ok := columns[name]; return ok }
	var table interface {
		row(r csvRow) error
		end() error
	}
	switch {
	case has("source_ip_address") && has("count") && has("begin_date"):
		table = &csvAggregate{out: out, reports: make(map[[sha256.Size]byte]*csvReport)}
	case has("policy_type") && has("successful_session_count"):
		table = &csvTLS{out: out}
	case has("feedback_type"):
		table = &csvFailure{out: out}
	default:
		return out.invalid(1, "the file is neither JSON nor a table of parsedmarc: the columns are %.200q", strings.Join(header, ","))
	}
	for {
		limit.reset()
		fields, err := reader.Read()
		if err != nil {
			return errors.Join(csvError(err, out), table.end())
		}
		line, _ := reader.FieldPos(0)
		if len(fields) != width {
			err = out.invalid(line, "the row has %d fields and the table %d columns: another version of parsedmarc has continued the file; "+
				"import the JSON, or split the file and begin each part with the columns of its version", len(fields), width)
			if err != nil {
				return err
			}
			continue
		}
		if err := table.row(csvRow{columns, fields, line}); err != nil {
			return err
		}
	}
}

// csvError returns an error of reading, nil at the end.
func csvError(err error, out output) error {
	var malformed *csv.ParseError
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case errors.As(err, &malformed):
		return out.invalid(malformed.Line, "the CSV is malformed: %s", malformed.Err)
	}
	return err
}

// csvAggregate is the table of aggregate reports, a row for each record. Rows of a report need
// not be together.
type csvAggregate struct {
	out     output
	reports map[[sha256.Size]byte]*csvReport
	order   []*csvReport
}

// csvReport is a report whose rows are not complete.
type csvReport struct {
	pending

	begin, end int64
}

func (c *csvAggregate) row(r csvRow) error {
	record, begin, end, err := csvRecord(r)
	if err != nil {
		return c.out.invalid(r.line, "a record cannot be used: %s", err)
	}
	key := sha256.Sum256([]byte(strings.Join([]string{r.text("org_name"), r.text("report_id"), r.text("domain")}, "\x00")))
	report := c.reports[key]
	if report == nil {
		if len(c.order) >= maxReports {
			return fmt.Errorf("%w: the file has more than %d reports; split it", dmarcd.ErrLimit, maxReports)
		}
		report = &csvReport{begin: begin, end: end}
		if report.head, err = c.out.spill.add(csvHead(r)); err != nil {
			return err
		}
		c.reports[key] = report
		c.order = append(c.order, report)
	}
	// The rows of a report about several days have a period each.
	report.begin, report.end = min(report.begin, begin), max(report.end, end)
	return c.out.spill.addRecord(&report.pending, record)
}

func csvHead(r csvRow) aggregate.Report {
	return aggregate.Report{
		Metadata: aggregate.Metadata{
			OrgName: r.text("org_name"), Email: r.text("org_email"), ExtraContact: r.text("org_extra_contact_info"), ReportID: r.text("report_id"),
			Errors: r.list("errors", "|"),
		},
		Policy: aggregate.PublishedPolicy{
			Domain: r.text("domain"), ADKIM: r.text("adkim"), ASPF: r.text("aspf"), P: aggregate.Policy(r.text("p")), SP: aggregate.Policy(r.text("sp")),
			NP: aggregate.Policy(r.text("np")), Percent: r.text("pct"), FailureOptions: r.text("fo"), Testing: r.text("testing"), DiscoveryMethod: r.text("discovery_method"),
		},
	}
}

func csvRecord(r csvRow) (record aggregate.Record, begin, end int64, err error) {
	if begin, err = parseTime(r.text("begin_date")); err != nil {
		return record, 0, 0, err
	}
	if end, err = parseTime(r.text("end_date")); err != nil {
		return record, 0, 0, err
	}
	if r.text("count") == "" {
		return record, 0, 0, errors.New("it has no count")
	}
	record = aggregate.Record{
		Source: r.text("source_ip_address"), Disposition: aggregate.Policy(r.text("disposition")),
		DKIM: csvResult(r.text("dkim_aligned")), SPF: csvResult(r.text("spf_aligned")),
		HeaderFrom: r.text("header_from"), EnvelopeFrom: r.text("envelope_from"), EnvelopeTo: r.text("envelope_to"),
	}
	if record.Count, err = count(r.text("count")); err != nil {
		return record, 0, 0, err
	}
	comments := r.list("policy_override_comments", "|")
	for i, kind := range r.list("policy_override_reasons", ",") {
		if kind != "none" { // it is missing
			record.Reasons = append(record.Reasons, aggregate.Reason{Type: kind, Comment: item(comments, i)})
		}
	}
	selectors, results := r.list("dkim_selectors", ","), r.list("dkim_results", ",")
	for i, domain := range r.list("dkim_domains", ",") {
		record.DKIMResults = append(record.DKIMResults, aggregate.DKIMResult{Domain: domain, Selector: item(selectors, i), Result: aggregate.Result(result(results, i))})
	}
	scopes, results := r.list("spf_scopes", ","), r.list("spf_results", ",")
	for i, domain := range r.list("spf_domains", ",") {
		record.SPFResults = append(record.SPFResults, aggregate.SPFResult{Domain: domain, Scope: item(scopes, i), Result: aggregate.Result(result(results, i))})
	}
	return record, begin, end, nil
}

// item returns an item of a list, "" behind its end and for "none", which parsedmarc writes
// for what is missing.
func item(list []string, i int) string {
	if i >= len(list) || list[i] == "none" {
		return ""
	}
	return list[i]
}

// result returns an item of a list of results, where "none" is one.
func result(list []string, i int) string {
	if i >= len(list) {
		return ""
	}
	return list[i]
}

// csvResult returns the result of an alignment.
func csvResult(aligned string) aggregate.Result {
	switch strings.ToLower(aligned) {
	case "true":
		return aggregate.ResultPass
	case "false":
		return aggregate.ResultFail
	}
	return ""
}

func (c *csvAggregate) end() error {
	for _, r := range c.order {
		var head aggregate.Report
		if err := c.out.spill.get(r.head, &head); err != nil {
			return err
		}
		head.Metadata.Begin, head.Metadata.End = r.begin, r.end
		if err := c.out.report(c.out.spill.aggregate(head, r.records)); err != nil {
			return err
		}
	}
	return nil
}

// csvTLS is the table of TLS reports: a row for each policy, followed by rows for its failures.
type csvTLS struct {
	out    output
	report tlsrpt.Report
	rows   int
	size   int // of the rows, in bytes
}

func (c *csvTLS) row(r csvRow) error {
	next := tlsrpt.Report{OrgName: r.text("organization_name"), ReportID: r.text("report_id")}
	if err := tlsTimes(&next, r.text("begin_date"), r.text("end_date")); err != nil {
		return c.out.invalid(r.line, "a row cannot be used: %s", err)
	}
	if c.rows > 0 && (next.OrgName != c.report.OrgName || next.ReportID != c.report.ReportID || next.Begin != c.report.Begin) {
		if err := c.end(); err != nil {
			return err
		}
	}
	if c.rows == 0 {
		c.report = next
	}
	for _, field := range r.fields {
		c.size += len(field)
	}
	if c.rows++; c.rows > maxTLSRows || c.size > maxValue {
		return fmt.Errorf("%w: line %d: a TLS report has more than %d rows or %d bytes", dmarcd.ErrLimit, r.line, maxTLSRows, maxValue)
	}
	successful, wrongSuccessful := count(r.text("successful_session_count"))
	failed, wrongFailed := count(r.text("failed_session_count"))
	if err := errors.Join(wrongSuccessful, wrongFailed); err != nil {
		return c.out.invalid(r.line, "a row cannot be used: %s", err)
	}
	if domain := r.text("policy_domain"); domain != "" {
		c.report.Policies = append(c.report.Policies, tlsrpt.Policy{
			Type: tlsrpt.PolicyType(r.text("policy_type")), Domain: domain, Strings: r.list("policy_strings", "|"), MXHosts: r.list("mx_host_patterns", "|"),
			Successful: successful, Failed: failed,
		})
		return nil
	}
	last := len(c.report.Policies) - 1
	if last < 0 {
		return c.out.invalid(r.line, "a failure comes before its policy")
	}
	policy := &c.report.Policies[last]
	policy.Failures = append(policy.Failures, tlsrpt.Failure{
		ResultType: tlsrpt.ResultType(r.text("result_type")), SendingMTAIP: r.text("sending_mta_ip"), ReceivingMXHostname: r.text("receiving_mx_hostname"),
		ReceivingMXHelo: r.text("receiving_mx_helo"), ReceivingIP: r.text("receiving_ip"), FailedSessions: failed,
		AdditionalInformation: r.text("additional_info_uri"), ReasonCode: r.text("failure_reason_code"),
	})
	return nil
}

func (c *csvTLS) end() error {
	if c.rows == 0 {
		return nil
	}
	report := c.report
	c.report, c.rows, c.size = tlsrpt.Report{}, 0, 0
	return c.out.report(func(w io.Writer) error { return tlsrpt.Render(w, report) })
}

// csvFailure is the table of failure reports, a row each. It has no headers of the mails.
type csvFailure struct{ out output }

func (c *csvFailure) row(r csvRow) error {
	if r.text("feedback_type") == "" && r.text("reported_domain") == "" {
		return c.out.invalid(r.line, "the row is empty: versions of parsedmarc before 9.0.6 write no values into the table of failure reports; import the JSON")
	}
	f := failureFields{
		FeedbackType: r.text("feedback_type"), UserAgent: r.text("user_agent"), Version: text(r.text("version")), EnvelopeID: r.text("original_envelope_id"),
		MailFrom: r.text("original_mail_from"), RcptTo: r.text("original_rcpt_to"), Arrival: r.text("arrival_date"), ArrivalUTC: r.text("arrival_date_utc"),
		MessageID: r.text("message_id"), Results: r.text("authentication_results"), Delivery: r.text("delivery_result"),
		AuthFailure: r.list("auth_failure", ","), Mechanisms: r.list("authentication_mechanisms", ","), DKIMDomain: r.text("dkim_domain"), Domain: r.text("reported_domain"), Subject: r.text("subject"),
	}
	f.Source.Address = r.text("source_ip_address")
	return c.out.report(f.write)
}

func (*csvFailure) end() error { return nil }

// mailDate formats a time for a header field.
func mailDate(seconds int64) string { return time.Unix(seconds, 0).UTC().Format(time.RFC1123Z) }
