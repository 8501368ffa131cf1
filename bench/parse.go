package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/xml"
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
func measureParse(ctx context.Context, s settings, e engine) []figure {
	if e.name() != "SQLite" {
		return nil // no database is involved
	}
	folder := get(os.MkdirTemp("", "dmarcd-bench-parse-"))
	defer func() { must(os.RemoveAll(folder)) }()
	small := writeSamples(folder, importReports, importRecords)
	large := writeSamples(folder, 1, importReports*importRecords)
	self := get(os.Executable())
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
		ours := func() float64 { return parseFiles(ctx, s.binary, slices.Concat(row.args, row.files)) }
		theirs := func() float64 { return parseFiles(ctx, self, append([]string{parseXML}, row.files...)) }
		rate, otherRate, ratio := compare(s.rounds, ours, theirs)
		figures = append(figures, figure{
			"`dmarcd parse` of " + row.what + ": records per CPU second, over gzip and `encoding/xml` into structs",
			fmt.Sprintf("%.1f times (%.0f over %.0f)", ratio, rate, otherRate), row.goal,
		})
	}
	return figures
}

// writeSamples writes reports to a folder and returns the file names.
func writeSamples(folder string, reports, records int) []string {
	names := make([]string, reports)
	for i := range reports {
		content := sample{number: i, domain: "example.com", records: records}.file()
		names[i] = filepath.Join(folder, fmt.Sprintf("receiver!example.com!%d!%d.xml.gz", records, i))
		must(os.WriteFile(names[i], content, 0o600))
	}
	return names
}

// parseFiles runs a program that parses importReports*importRecords records, and returns
// the records per second of CPU time.
func parseFiles(ctx context.Context, program string, args []string) float64 {
	command := exec.CommandContext(ctx, program, args...) //nolint:gosec // our own programs
	var problems bytes.Buffer
	command.Stderr = &problems
	if err := command.Run(); err != nil {
		must(fmt.Errorf("%s: %w: %s", args[0], err, problems.Bytes()))
	}
	used := command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	return importReports * importRecords / used.Seconds()
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
func parseWithXML(out io.Writer, files []string) {
	for _, name := range files {
		file := get(os.Open(name)) //nolint:gosec // files of this program
		var report xmlReport
		must(xml.NewDecoder(get(gzip.NewReader(file))).Decode(&report))
		must(file.Close())
		get(fmt.Fprintln(out, name, report.Metadata.OrgName, report.Metadata.ReportID, len(report.Records)))
	}
}
