package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// parseForms are the output format flags.
type parseForms struct{ json, csv, summary bool }

func (p *program) parseCommand() *cobra.Command {
	var forms parseForms
	cmd := &cobra.Command{
		Use:   "parse FILE...",
		Short: "Parse report files and print their contents",
		Long: `Parses aggregate, failure and TLS reports: plain, in gzip, zip, email messages or
mailboxes, also nested. It needs no database and no server. The argument - reads standard
input. Local parts of addresses in failure reports are redacted. The limits of the
configuration apply: see the limit.* settings in "dmarcd config".

--json prints an array of reports with their records. --csv prints one row per record,
and separate rows for the successes and failures of a TLS policy; texts that a
spreadsheet would treat as a formula start with '. --summary prints one line per report
with tab-separated fields: file, kind, organization, report id, domain, begin, end,
records, messages and compliant messages. Times are seconds since 1970. For TLS reports,
records are policies and messages are sessions.

Exit status: 0 if everything was parsed; 1 if some content is not a report (details on
standard error); 2 if a file could not be read.`,
		Example: `  dmarcd parse report.xml.gz mailbox.mbox
  dmarcd parse --csv reports/*.zip > records.csv
  dmarcd parse --json - < mail.eml
  dmarcd parse --limit-upload 1000000000 years.mbox`,
		Args: cobra.MinimumNArgs(1),
	}
	flags := cmd.Flags()
	flags.BoolVar(&forms.json, "json", false, "print JSON")
	flags.BoolVar(&forms.csv, "csv", false, "print one row per record")
	flags.BoolVar(&forms.summary, "summary", false, "print one line per report")
	onlyOne(cmd, "json", "csv", "summary")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		effective, err := p.configuration(cmd)
		if err != nil {
			return err
		}
		return p.parseFiles(cmd.Context(), args, app.Limits(effective.Config), forms)
	}
	return cmd
}

// reportPrinter prints reports one at a time. Rejected items are not passed to it.
type reportPrinter interface {
	print(ctx context.Context, file string, item *intake.Item) error
	end() error
}

func (p *program) reportPrinter(out io.Writer, forms parseForms) reportPrinter {
	switch {
	case forms.json:
		return &jsonReports{jsonArray{out: out}}
	case forms.csv:
		return newCSVReports(out)
	case forms.summary:
		return &reportLines{out: out}
	default:
		return &reportPages{page: &checkPage{out: out, colours: p.colours(p.out)}}
	}
}

// parseFiles prints the reports in the files.
func (p *program) parseFiles(ctx context.Context, files []string, limits intake.Limits, forms parseForms) error {
	out := bufio.NewWriter(p.out)
	parsing := &parsing{program: p, reader: intake.NewReader(limits), out: out, printer: p.reportPrinter(out, forms)}
	for _, file := range files {
		if err := parsing.file(ctx, file); err != nil {
			return errors.Join(err, out.Flush())
		}
	}
	if err := errors.Join(parsing.printer.end(), out.Flush()); err != nil {
		return err
	}
	switch {
	case parsing.unread > 0:
		return fmt.Errorf("%d of %d files could not be read", parsing.unread, len(files))
	case parsing.rejected > 0:
		return errReported
	}
	return nil
}

type parsing struct {
	*program

	reader   *intake.Reader
	out      *bufio.Writer
	printer  reportPrinter
	unread   int // files that could not be read
	rejected int // items that are not reports
}

// file prints the reports in one file and reports rejected items. It returns only fatal
// errors.
func (p *parsing) file(ctx context.Context, name string) error {
	in, done, err := p.open(name)
	if err != nil {
		p.warn(err.Error())
		p.unread++
		return nil
	}
	defer done()
	var broken error
	err = p.reader.Read(ctx, in, func(item *intake.Item) error {
		if item.Err != nil {
			p.reject(name, item.Path, item.Err)
		} else {
			broken = p.printer.print(ctx, name, item)
		}
		return broken
	})
	switch {
	case broken != nil:
		return broken
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, dmarcd.ErrLimit):
		p.reject(name, "", err)
	case err != nil:
		p.warn(name + ": " + err.Error())
		p.unread++
	}
	return nil
}

// reject reports in one line that an item is not a report, and why.
func (p *parsing) reject(file, path string, reason error) {
	where := file
	if path != "" {
		where += ": " + path
	}
	p.warn(where + ": " + reason.Error())
	p.rejected++
}

// warn prints a message after the reports before it.
func (p *parsing) warn(text string) {
	_ = p.out.Flush() // the next write returns the same error
	p.notify("%s\n", printable(text))
}

// open opens a file for reading. Regular files support random access, which avoids copies
// of archives.
func (p *parsing) open(name string) (in io.Reader, done func(), err error) {
	if name == "-" {
		return p.in, func() {}, nil
	}
	file, err := os.Open(name) //nolint:gosec // the arguments are file names
	if err != nil {
		return nil, nil, err
	}
	done = func() { _ = file.Close() } // read-only
	info, err := file.Stat()
	switch {
	case err != nil:
		done()
		return nil, nil, err
	case info.IsDir():
		done()
		return nil, nil, fmt.Errorf("%s is a folder; parse reads files only", name)
	case info.Mode().IsRegular():
		return io.NewSectionReader(file, 0, info.Size()), done, nil
	}
	return file, done, nil
}

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

// jsonReports streams an array record by record, so that a report with a million records
// need not fit into memory. On error the array stays open, which marks it as incomplete.
type jsonReports struct{ jsonArray }

func (j *jsonReports) print(ctx context.Context, file string, item *intake.Item) error {
	if err := j.next(); err != nil {
		return err
	}
	if item.Aggregate != nil {
		return j.aggregate(ctx, file, item)
	}
	return printJSON(j.out, wire.NewReport(file, item.Report()))
}

// aggregate prints the metadata of a report, with its records as the last member.
func (j *jsonReports) aggregate(ctx context.Context, file string, item *intake.Item) error {
	var facts bytes.Buffer
	if err := printJSON(&facts, wire.NewReport(file, item.Report())); err != nil {
		return err
	}
	if _, err := j.out.Write(bytes.TrimSuffix(facts.Bytes(), []byte("\n}\n"))); err != nil {
		return err
	}
	if _, err := io.WriteString(j.out, ",\n  \"record_list\": ["); err != nil {
		return err
	}
	lines := json.NewEncoder(j.out) // ends each record with a newline
	lines.SetEscapeHTML(false)
	separator := "\n    "
	for record, err := range item.Aggregate.Records(ctx) {
		if err != nil {
			return err
		}
		if _, err := io.WriteString(j.out, separator); err != nil {
			return err
		}
		if err := lines.Encode(wire.NewAggregateRecord(record)); err != nil {
			return err
		}
		separator = "    ,"
	}
	closing := "  ]\n}\n"
	if item.Aggregate.Report.Records == 0 {
		closing = "]\n}\n"
	}
	_, err := io.WriteString(j.out, closing)
	return err
}
