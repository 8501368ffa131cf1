package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/wire"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

const (
	// pageRecords limits the records shown per report.
	pageRecords = 25
	// labelWidth is the width of the labels.
	labelWidth = 13
)

// reportPages prints reports as text.
type reportPages struct {
	page *checkPage
	some bool
}

func (r *reportPages) end() error { return nil }

func (r *reportPages) print(ctx context.Context, file string, item *intake.Item) error {
	if r.some {
		r.page.line("")
	}
	r.some = true
	r.heading(file, item)
	switch {
	case item.Aggregate != nil:
		r.aggregateFacts(item.Aggregate)
		if err := r.records(ctx, item.Aggregate); err != nil {
			return err
		}
	case item.Failure != nil:
		r.failureFacts(item)
	default:
		r.tlsFacts(item.TLS)
	}
	r.oddities(item)
	return r.page.err
}

// heading prints the file name and the kind of a report.
func (r *reportPages) heading(file string, item *intake.Item) {
	kind := item.Kind.String() + " report"
	if item.TLS != nil {
		kind = "TLS report"
	}
	file = cutLine(file, pageWidth-len(kind)-2)
	gap := pageWidth - utf8.RuneCountInString(file) - len(kind)
	r.page.line(r.page.paint(bold, file) + strings.Repeat(" ", gap) + kind)
	r.fact("member", item.Path)
}

// fact prints one labelled value unless it is empty.
func (r *reportPages) fact(label, value string) {
	if value != "" {
		r.page.line(cutLine(fmt.Sprintf("  %-*s%s", labelWidth, label, value), pageWidth))
	}
}

// period prints a time range.
func (r *reportPages) period(begin, end int64) {
	if begin == 0 && end == 0 {
		return
	}
	r.fact("period", pageTime(time.Unix(begin, 0))+" to "+pageTime(time.Unix(end, 0))+" UTC")
}

func pageTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

func (r *reportPages) aggregateFacts(a *intake.Aggregate) {
	m, p := a.Report.Metadata, a.Report.Policy
	r.fact("reporter", withRemark(m.Organization(), m.Email))
	r.fact("contact", m.ExtraContact)
	r.fact("report id", m.ReportID)
	r.period(m.Begin, m.End)
	r.fact("domain", p.Domain)
	var tags []string
	for _, tag := range [][2]string{
		{"p", string(p.P)},
		{"sp", string(p.SP)},
		{"np", string(p.NP)},
		{"adkim", p.ADKIM},
		{"aspf", p.ASPF},
		{"pct", p.Percent},
		{"fo", p.FailureOptions},
		{"t", p.Testing},
		{"psd", p.PSD},
	} {
		if tag[1] != "" {
			tags = append(tags, tag[0]+"="+tag[1])
		}
	}
	r.fact("policy", strings.Join(tags, " "))
	r.fact("messages", fmt.Sprintf("%d in %s from %s, of which %s compliant", a.Messages,
		number(a.Report.Records, "record"), number(a.Sources, "source"), percent(a.Compliant, a.Messages)))
	for _, text := range m.Errors {
		r.fact("error", text)
	}
}

// withRemark returns "text (remark)", or the one that is not empty.
func withRemark(text, remark string) string {
	switch {
	case remark == "" || remark == text:
		return text
	case text == "":
		return remark
	}
	return text + " (" + remark + ")"
}

// percent formats a part of a total with its percentage, rounded down so that 100 % means
// all. Counts are below 2^54, so the product cannot overflow.
func percent(part, whole int64) string {
	if whole == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%d %%)", part, part*100/whole)
}

// number formats a count with its unit, such as "2 files".
func number(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// records prints the first records as a table.
func (r *reportPages) records(ctx context.Context, a *intake.Aggregate) error {
	var rows [][]string
	for record, err := range a.Records(ctx) {
		if err != nil {
			return err
		}
		rows = append(rows, pageRow(record))
		if len(rows) == pageRecords {
			break
		}
	}
	if len(rows) == 0 {
		return nil
	}
	r.table(1, []string{"MESSAGES", "SOURCE", "DKIM", "SPF", "DISPOSITION", "HEADER FROM"}, rows)
	if left := a.Report.Records - len(rows); left > 0 {
		r.page.line(fmt.Sprintf("  ... and %s more; --csv and --json show all", number(left, "record")))
	}
	return nil
}

func pageRow(record aggregate.Record) []string {
	return []string{
		strconv.FormatInt(record.Count, 10), record.Source, string(record.DKIM), string(record.SPF),
		string(record.Disposition), record.HeaderFrom,
	}
}

// table prints rows in columns; the first few are numeric. The last column takes the
// remaining width.
func (r *reportPages) table(numbers int, heading []string, rows [][]string) {
	rows = append([][]string{heading}, rows...)
	widths := make([]int, len(heading)-1)
	for _, row := range rows {
		for i := range widths {
			widths[i] = max(widths[i], min(utf8.RuneCountInString(row[i]), pageWidth/2))
		}
	}
	r.page.line("")
	for i, row := range rows {
		var line strings.Builder
		for column, width := range widths {
			text := cutLine(row[column], width)
			blanks := strings.Repeat(" ", width-utf8.RuneCountInString(text))
			if column < numbers {
				line.WriteString("  " + blanks + text)
			} else {
				line.WriteString("  " + text + blanks)
			}
		}
		text := cutLine(line.String()+"  "+row[len(widths)], pageWidth)
		if i == 0 {
			text = r.page.paint(bold, text)
		}
		r.page.line(text)
	}
}

func (r *reportPages) failureFacts(item *intake.Item) {
	f := item.Failure
	r.fact("reporter", withRemark(f.ReportingMTA, f.UserAgent))
	r.fact("domain", f.ReportedDomain)
	if !f.ArrivalDate.IsZero() {
		r.fact("date", pageTime(f.ArrivalDate)+" UTC")
	}
	r.fact("source", f.Source())
	r.fact("failed", string(f.AuthFailure))
	if f.AlignmentReported {
		r.fact("not aligned", f.IdentityAlignment())
	}
	r.fact("delivery", string(f.DeliveryResult))
	r.fact("messages", strconv.Itoa(f.Incidents))
	r.fact("from", f.From)
	r.fact("mail from", f.OriginalMailFrom)
	r.fact("message id", f.MessageID)
	for _, results := range f.AuthenticationResults {
		r.page.wrap(results, fmt.Sprintf("  %-*s", labelWidth, "results"), strings.Repeat(" ", labelWidth+2))
	}
}

func (r *reportPages) tlsFacts(t *tlsrpt.Report) {
	successful, failed := t.Sessions()
	r.fact("reporter", withRemark(t.Organization(), t.ContactInfo))
	r.fact("report id", t.ReportID)
	r.period(t.Begin, t.End)
	r.fact("sessions", fmt.Sprintf("%d, of which %s successful", successful+failed, percent(successful, successful+failed)))
	var policies, failures [][]string
	for _, p := range t.Policies {
		policies = append(policies, []string{
			strconv.FormatInt(p.Successful, 10), strconv.FormatInt(p.Failed, 10), string(p.Type), p.Domain,
		})
		for _, f := range p.Failures {
			failures = append(failures, []string{
				strconv.FormatInt(f.FailedSessions, 10), string(f.ResultType), f.SendingMTAIP, f.ReceivingMXHostname,
			})
		}
	}
	r.first(2, []string{"SUCCESSFUL", "FAILED", "POLICY", "DOMAIN"}, policies)
	r.first(1, []string{"FAILED", "RESULT", "SENT FROM", "TO"}, failures)
}

// first prints the first rows of a table and the number of omitted ones.
func (r *reportPages) first(numbers int, heading []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	shown := min(len(rows), pageRecords)
	r.table(numbers, heading, rows[:shown])
	if left := len(rows) - shown; left > 0 {
		r.page.line(fmt.Sprintf("  ... and %d more; --json shows all", left))
	}
}

// oddities prints damage and quirks of a report with their meaning.
func (r *reportPages) oddities(item *intake.Item) {
	quirks := wire.NewQuirks(item.Report())
	if item.Damage == nil && len(quirks) == 0 {
		return
	}
	r.page.line("")
	if item.Damage != nil {
		r.page.wrap(item.Damage.Error(), "  "+r.page.paint(yellow, "damaged")+"  ", "           ")
	}
	for _, q := range quirks {
		times := ""
		if q.Count > 1 {
			times = fmt.Sprintf(" (%d times)", q.Count)
		}
		r.page.line("  " + r.page.paint(yellow, q.Quirk) + times)
		r.page.wrap(q.Meaning, "    ", "    ")
	}
}
