package main

import (
	"context"
	"io"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd/internal/intake"
)

// summary contains the facts that all kinds of reports share.
type summary struct {
	organization, reportID, domain string
	begin, end                     int64 // seconds since 1970
	records                        int
	messages, compliant            int64
}

// summaryOf summarizes a report. A failure report is one record that fails DMARC; the
// message id stands in for the report id. The records of a TLS report are its policies,
// its messages are sessions, and the successful ones are compliant.
func summaryOf(item *intake.Item) summary {
	switch {
	case item.Aggregate != nil:
		a := item.Aggregate
		m := a.Report.Metadata
		return summary{
			organization: m.Organization(), reportID: m.ReportID, domain: a.Report.Policy.Domain, begin: m.Begin, end: m.End,
			records: a.Report.Records, messages: a.Messages, compliant: a.Compliant,
		}
	case item.Failure != nil:
		r := item.Failure
		s := summary{
			organization: r.ReportingMTA, reportID: r.MessageID, domain: r.ReportedDomain,
			records: 1, messages: int64(r.Incidents),
		}
		if !r.ArrivalDate.IsZero() {
			s.begin = r.ArrivalDate.Unix()
			s.end = s.begin
		}
		return s
	default:
		r := item.TLS
		successful, failed := r.Sessions()
		return summary{
			organization: r.Organization(), reportID: r.ReportID, domain: r.Key().Domain, begin: r.Begin, end: r.End,
			records: len(r.Policies), messages: successful + failed, compliant: successful,
		}
	}
}

// reportLines prints one line of tab-separated fields per report.
type reportLines struct{ out io.Writer }

func (l *reportLines) print(_ context.Context, file string, item *intake.Item) error {
	s := summaryOf(item)
	fields := []string{
		file, item.Kind.String(), s.organization, s.reportID, s.domain,
		strconv.FormatInt(s.begin, 10), strconv.FormatInt(s.end, 10),
		strconv.Itoa(s.records), strconv.FormatInt(s.messages, 10), strconv.FormatInt(s.compliant, 10),
	}
	// Replace tabs and newlines in values.
	_, err := io.WriteString(l.out, strings.Join(convert(fields, printable), "\t")+"\n")
	return err
}

func (l *reportLines) end() error { return nil }
