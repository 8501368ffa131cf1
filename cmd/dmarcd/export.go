package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/client"
	"github.com/dmarcd/dmarcd/internal/export"
)

func (p *program) exportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export --team NAME",
		Short: "Export records of aggregate reports as Parquet, NDJSON or CSV, or to a syslog server",
		Long: `Writes the records of aggregate reports with all columns, in the order in which their
reports were received: those that count for a domain of the team, or with --all also those
that do not. docs/export.md describes the columns.

The format follows from the name of the output (.parquet, .ndjson, .jsonl, .csv), else it
is NDJSON. A file appears under its name when it is complete. In CSV, texts that a
spreadsheet would treat as a formula start with '.

--audit writes the audit log of the team instead, latest first, as NDJSON with the members
of the API.

--syslog sends records, or with --events the events or with --audit the audit log, to a syslog server: a
message by RFC 5424 each, with the JSON object of NDJSON or of the API. --follow goes on
with those to come until it is interrupted. --cursor-file holds the place of the last one
that was sent, and the next run continues there.`,
		Example: `  dmarcd export --team acme --output records.parquet
  dmarcd export --team acme --domain example.com --from 2026-10-01 --to 2026-10-31 --output october.csv
  dmarcd export --team acme --format ndjson | gzip > records.ndjson.gz
  dmarcd export --team acme --syslog tls://siem.example:6514 --follow --cursor-file records.cursor
  dmarcd export --team acme --syslog tcp://siem.example:514 --events --follow --cursor-file events.cursor
  dmarcd export --team acme --audit --output audit.ndjson`,
		Args: cobra.NoArgs,
	}
	apiFlags(cmd)
	var filter client.RecordFilter
	flags := cmd.Flags()
	flags.StringVar(&filter.Domain, "domain", "", "only records of this domain of the team")
	from := flags.String("from", "", "only reports that begin on this day (YYYY-MM-DD) or later")
	to := flags.String("to", "", "only reports that begin on this day or earlier")
	flags.BoolVar(&filter.All, "all", false, "include records that count nowhere: of excluded, held and replaced reports, and without a domain")
	format := flags.String("format", "", "parquet, ndjson or csv")
	output := flags.String("output", "-", "file to write; - is standard output")
	var target syslogTarget
	flags.StringVar(&target.url, "syslog", "", "syslog server to send to, such as tls://siem.example:6514; tcp, tls or udp")
	flags.BoolVar(&target.events, "events", false, "send events instead of records")
	flags.BoolVar(&target.audit, "audit", false, "export the audit log instead of records")
	flags.BoolVar(&target.follow, "follow", false, "go on with what arrives, until interrupted")
	flags.StringVar(&target.cursorFile, "cursor-file", "", "file with the place of the last message that was sent")
	for _, other := range []string{"format", "output"} {
		onlyOne(cmd, "syslog", other)
	}
	for _, other := range []string{"from", "to", "all", "audit"} {
		onlyOne(cmd, "events", other)
	}
	for _, other := range []string{"domain", "all"} {
		onlyOne(cmd, "audit", other)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		for name, end := range map[string]struct {
			text string
			day  *dmarcd.Day
		}{"from": {*from, &filter.From}, "to": {*to, &filter.To}} {
			day, err := dayFlag(name, end.text)
			if err != nil {
				return err
			}
			if day != nil {
				*end.day = *day
			}
		}
		if *from != "" && *to != "" && filter.From > filter.To {
			return errors.New("--from must not be later than --to")
		}
		if target.url != "" {
			return p.exportSyslog(cmd, filter, target)
		}
		if target.events || target.follow || target.cursorFile != "" {
			return errors.New("--events, --follow and --cursor-file need --syslog")
		}
		chosen := export.Format(*format)
		if chosen == "" {
			chosen = formatOf(*output)
		}
		if target.audit && chosen != export.NDJSON {
			return errors.New("the audit log is exported as NDJSON only")
		}
		if *output == "-" && chosen == export.Parquet && isTerminal(p.out) {
			return errors.New("a terminal cannot show Parquet; use --output FILE")
		}
		if !slices.Contains(export.Formats(), chosen) {
			_, err := export.NewWriter(chosen, io.Discard)
			return err
		}
		filter.Unsettled = true
		return p.withClient(cmd, func(c *client.Client) error {
			if target.audit {
				return p.exportAudit(cmd.Context(), c, client.AuditFilter{Period: filter.Period}, *output)
			}
			return p.exportFile(cmd.Context(), c, filter, chosen, *output)
		})
	}
	return cmd
}

// formatOf returns the format that the name of a file suggests.
func formatOf(file string) export.Format {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".parquet":
		return export.Parquet
	case ".csv":
		return export.CSV
	}
	return export.NDJSON
}

// exportAudit writes the audit log to a file.
func (p *program) exportAudit(ctx context.Context, c *client.Client, filter client.AuditFilter, output string) error {
	n := 0
	err := p.writeOutput(output, func(out io.Writer) error {
		for entry, err := range c.ListAudit(ctx, filter) {
			if err == nil {
				_, err = out.Write(append(jsonLine(entry), '\n'))
			}
			if err != nil {
				return err
			}
			n++
		}
		return nil
	})
	if err == nil && output != "-" {
		p.notify("%d entries of the audit log exported to %s\n", n, printable(output))
	}
	return err
}

// exportFile writes records to a file.
func (p *program) exportFile(ctx context.Context, c *client.Client, filter client.RecordFilter, format export.Format, output string) error {
	n := 0
	err := p.writeOutput(output, func(out io.Writer) (err error) {
		n, err = p.exportRecords(ctx, c, filter, format, out)
		return err
	})
	if err == nil && output != "-" {
		p.notify("%s exported to %s\n", number(n, "record"), printable(output))
	}
	return err
}

// writeOutput writes a file, which appears under its name once it is complete. A device or a pipe is
// written directly; - is standard output.
func (p *program) writeOutput(output string, write func(io.Writer) error) (err error) {
	out, done := p.out, func() error { return nil }
	switch info, err := os.Stat(output); {
	case output == "-":
	case err == nil && !info.Mode().IsRegular():
		file, err := os.OpenFile(output, os.O_WRONLY, 0) //nolint:gosec // the operator names it
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() // closed before unless something failed
		out, done = file, file.Close
	default:
		file, err := os.CreateTemp(filepath.Dir(output), "."+filepath.Base(output)+".*")
		if err != nil {
			return err
		}
		defer func() { _ = os.Remove(file.Name()) }() // it is renamed unless something failed
		defer func() { _ = file.Close() }()           // closed before unless something failed
		out, done = file, func() error {
			return errors.Join(file.Close(), os.Rename(file.Name(), output))
		}
	}
	if err := write(out); err != nil {
		return err
	}
	return done()
}

// exportRecords writes records and returns how many there were.
func (p *program) exportRecords(ctx context.Context, c *client.Client, filter client.RecordFilter, format export.Format, out io.Writer) (n int, err error) {
	writer, err := export.NewWriter(format, out)
	if err != nil {
		return 0, err
	}
	advance, done, err := p.exportProgress(ctx, c, filter)
	if err != nil {
		return 0, err
	}
	defer done()
	for record, err := range c.ExportRecordLines(ctx, filter) {
		if err == nil {
			err = writer.Write(record)
		}
		if err != nil {
			return n, unknownDomain(err, filter.Domain)
		}
		if n++; n%progressRecords == 0 {
			advance(record)
		}
	}
	return n, writer.Close()
}

// progressRecords is the number of records after which the progress is shown.
const progressRecords = 500

// exportProgress shows how far an export is: reports are read by their ids, which grow with
// time.
func (p *program) exportProgress(ctx context.Context, c *client.Client, filter client.RecordFilter) (advance func(record []byte), done func(), err error) {
	if !isTerminal(p.err) {
		return func([]byte) {}, func() {}, nil
	}
	list := client.ReportFilter{Kind: string(dmarcd.KindAggregate), Domain: filter.Domain, Period: filter.Period, PageSize: 1}
	newest, err := first(1, c.ListReports(ctx, list))
	if err != nil || len(newest) == 0 {
		return func([]byte) {}, func() {}, err
	}
	const steps = 1000
	first, at := dmarcd.ReportID(0), 0
	last, _ := dmarcd.ParseReportID(newest[0].ID) // the server wrote it
	bar, done := p.progress(steps, 0, "exporting")
	return func(record []byte) {
		var of struct{ Report string }
		_ = json.Unmarshal(record, &of)          // the client has checked it
		id, _ := dmarcd.ParseReportID(of.Report) // the server wrote it
		if first == 0 {
			first = id
		}
		now := int(float64(id-first) / max(1, float64(last-first)) * steps)
		bar(max(0, now-at))
		at = now
	}, done, nil
}
