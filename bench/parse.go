package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// parseXML is the argument that makes this program parse files with encoding/xml.
const parseXML = "parse-xml"

// measureParse compares `dmarcd parse` with compress/gzip and encoding/xml into structs,
// on small files and on a large one. Both are processes, and rates are per second of CPU
// time, so that other processes on the machine do not matter.
func measureParse(ctx context.Context, s settings, e engine) (_ []figure, err error) {
	if e.name() != "SQLite" {
		return nil, nil // no database is involved
	}
	folder, err := os.MkdirTemp("", "dmarcd-bench-parse-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	small, err := writeSamples(folder, importReports, importRecords)
	if err != nil {
		return nil, err
	}
	large, err := writeSamples(folder, 1, importReports*importRecords)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var figures []figure
	for _, row := range []struct {
		what, goal string
		args       []string
		files      []string
	}{
		{fmt.Sprintf("%d files with %d records each, --summary", importReports, importRecords), "at least 6", []string{"parse", "--summary"}, small},
		{"the same, as text", "", []string{"parse"}, small},
		{"the same, --json", "", []string{"parse", "--json"}, small},
		{fmt.Sprintf("one file with %d records, --summary", importReports*importRecords), "at least 6", []string{"parse", "--summary"}, large},
	} {
		ours := func() (float64, error) {
			return parseFiles(ctx, s.binary, slices.Concat(row.args, row.files))
		}
		theirs := func() (float64, error) { return parseFiles(ctx, self, append([]string{parseXML}, row.files...)) }
		rate, otherRate, ratio, err := compare(s.rounds, ours, theirs)
		if err != nil {
			return nil, err
		}
		figures = append(figures, figure{
			"`dmarcd parse` of " + row.what + ": records per CPU second, over gzip and `encoding/xml` into structs",
			fmt.Sprintf("%.1f times (%.0f over %.0f)", ratio, rate, otherRate), row.goal,
		})
	}
	return figures, nil
}

// writeSamples writes reports to a folder and returns the file names.
func writeSamples(folder string, reports, records int) ([]string, error) {
	names := make([]string, reports)
	for i := range reports {
		content, err := sample{number: i, domain: "example.com", records: records}.file()
		if err != nil {
			return nil, err
		}
		names[i] = filepath.Join(folder, fmt.Sprintf("receiver!example.com!%d!%d.xml.gz", records, i))
		if err := os.WriteFile(names[i], content, 0o600); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// parseFiles runs a program that parses importReports*importRecords records, and returns
// the records per second of CPU time.
func parseFiles(ctx context.Context, program string, args []string) (float64, error) {
	command := exec.CommandContext(ctx, program, args...) //nolint:gosec // our own programs
	var problems bytes.Buffer
	command.Stderr = &problems
	if err := command.Run(); err != nil {
		return 0, fmt.Errorf("%s: %w: %s", args[0], err, problems.Bytes())
	}
	used := command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	return importReports * importRecords / used.Seconds(), nil
}

// xmlReport contains the elements of an aggregate report.
type xmlReport struct {
	Version  string      `xml:"version"`
	Metadata xmlMetadata `xml:"report_metadata"`
	Policy   xmlPolicy   `xml:"policy_published"`
	Records  []xmlRecord `xml:"record"`
}

type xmlMetadata struct {
	OrgName  string `xml:"org_name"`
	Email    string `xml:"email"`
	ReportID string `xml:"report_id"`
	Begin    int64  `xml:"date_range>begin"`
	End      int64  `xml:"date_range>end"`
}

type xmlPolicy struct {
	Domain string `xml:"domain"`
	P      string `xml:"p"`
	SP     string `xml:"sp"`
	ADKIM  string `xml:"adkim"`
	ASPF   string `xml:"aspf"`
}

type xmlRecord struct {
	SourceIP     string      `xml:"row>source_ip"`
	Count        int64       `xml:"row>count"`
	Disposition  string      `xml:"row>policy_evaluated>disposition"`
	DKIM         string      `xml:"row>policy_evaluated>dkim"`
	SPF          string      `xml:"row>policy_evaluated>spf"`
	HeaderFrom   string      `xml:"identifiers>header_from"`
	EnvelopeFrom string      `xml:"identifiers>envelope_from"`
	DKIMResults  []xmlResult `xml:"auth_results>dkim"`
	SPFResults   []xmlResult `xml:"auth_results>spf"`
}

type xmlResult struct {
	Domain   string `xml:"domain"`
	Selector string `xml:"selector"`
	Scope    string `xml:"scope"`
	Result   string `xml:"result"`
}

// parseWithXML prints a line for each report in gzip files.
func parseWithXML(out io.Writer, files []string) error {
	for _, name := range files {
		file, err := os.Open(name) //nolint:gosec // files of this program
		if err != nil {
			return err
		}
		var report xmlReport
		packed, err := gzip.NewReader(file)
		if err == nil {
			err = xml.NewDecoder(packed).Decode(&report)
		}
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, name, report.Metadata.OrgName, report.Metadata.ReportID, len(report.Records)); err != nil {
			return err
		}
	}
	return nil
}
