package main

import (
	"context"
	"io"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd/internal/intake"
)

// summary is what reports of all kinds have in common.
type summary struct {
	organization, reportID, domain string
	begin, end                     int64 // seconds since 1970
	records                        int
	messages, compliant            int64
}

// summaryOf sums a report up. A failure report is one record, about mails that did
// not pass; it has no id of its own, that of the mail stands in. The records of a TLS report are its policies, its messages are sessions,
// and the successful ones are compliant.
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

// reportLines prints a line of fields with tabs between for each report.
type reportLines struct{ out io.Writer }

func (l *reportLines) tell(_ context.Context, file string, item *intake.Item) error {
	s := summaryOf(item)
	fields := []string{
		file, item.Kind.String(), s.organization, s.reportID, s.domain,
		strconv.FormatInt(s.begin, 10), strconv.FormatInt(s.end, 10),
		strconv.Itoa(s.records), strconv.FormatInt(s.messages, 10), strconv.FormatInt(s.compliant, 10),
	}
	// A tab or the end of a line in a text would be taken for ours.
	_, err := io.WriteString(l.out, strings.Join(convert(fields, printable), "\t")+"\n")
	return err
}

func (l *reportLines) end() error { return nil }
