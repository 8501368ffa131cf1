package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
)

func TestImportReportsResultsOfFiles(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, "")
	folder := t.TempDir()
	settings := []string{"--data=" + folder, "--database=" + filepath.Join(folder, "dmarcd.db")}
	for _, args := range [][]string{{"team", "create", "acme"}, {"domain", "add", "--team", "acme", "example.com"}} {
		if status, _, stderr := runProgram(t, server, "", append(args, settings...)...); status != exitDone {
			t.Fatal(stderr)
		}
	}
	good, bad, missing := filepath.Join(folder, "good.xml"), filepath.Join(folder, "bad.xml"), filepath.Join(folder, "missing")
	for name, content := range map[string]string{good: reportOf("receiver.example", recordFrom("192.0.2.1")), bad: "hello"} {
		musttest.Do(t, os.WriteFile(name, []byte(content), 0o600))
	}
	for _, tt := range []struct {
		name   string
		paths  []string
		status int
		stdout string
		stderr string
	}{
		{"nothing is there", []string{missing}, exitFailed, "0 files read; 0 new records, 0 messages\n", "stat " + missing + ": no such file or directory\ndmarcd: 1 of 1 files could not be read\n"},
		{"one report", []string{good}, exitDone, "1 file read, 1 report stored; 1 new record, 1 message\n", ""},
		{
			"all of it",
			[]string{good, bad, missing},
			exitFailed, "2 files read, 1 duplicate, 1 rejected; 0 new records, 0 messages\n",
			"stat " + missing + ": no such file or directory\n" + bad + ": this is text, not a report\ndmarcd: 1 of 3 files could not be read\n",
		},
	} {
		status, stdout, stderr := runProgram(t, server, "", append(append([]string{"import", "--team", "acme"}, tt.paths...), settings...)...)
		if status != tt.status || stdout != tt.stdout || stderr != tt.stderr {
			t.Errorf("%s: got status %d, %q and %q, want %d, %q and %q", tt.name, status, stdout, stderr, tt.status, tt.stdout, tt.stderr)
		}
	}
}

// outputOf is the output of parsedmarc with so many records of 3 messages in each of the
// reports.
func outputOf(reports, records int, more ...string) string {
	var b strings.Builder
	for i := range reports {
		rows := slices.Clone(more)
		for j := range records {
			rows = append(rows, fmt.Sprintf(`{"source": {"ip_address": "192.0.2.%d"}, "count": 3, "policy_evaluated": {"disposition": "none", "dkim": "fail", "spf": "pass"},
  "identifiers": {"header_from": "example.com"}}`, j+1))
		}
		fmt.Fprintf(&b, `{"report_metadata": {"org_name": "receiver.example", "report_id": "id-%d", "begin_date": "2026-11-01 00:00:00", "end_date": "2026-11-01 23:59:59"},
 "policy_published": {"domain": "example.com"}, "records": [%s]}`+"\n", i, strings.Join(rows, ",\n"))
	}
	return b.String()
}

func TestImportFromParsedmarc(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	server := resolvertest.Start(t, "")
	folder := t.TempDir()
	settings := []string{"--data=" + folder, "--database=" + filepath.Join(folder, "dmarcd.db")}
	output, broken := filepath.Join(folder, "aggregate.json"), filepath.Join(folder, "broken.json")
	for name, content := range map[string]string{
		output: outputOf(70, 30),
		broken: outputOf(1, 1, `{"count": -1}`),
	} {
		musttest.Do(t, os.WriteFile(name, []byte(content), 0o600))
	}
	for _, tt := range []struct {
		args           []string
		status         int
		stdout, stderr string
	}{
		{[]string{"team", "create", "acme"}, exitDone, "", ""},
		{[]string{"domain", "add", "--team", "acme", "example.com"}, exitDone, "", ""},
		{[]string{"import", "--team", "acme", "--from", "parsedmarc", output}, exitDone, "1 file read, 70 reports stored; 2100 new records, 6300 messages\n", ""},
		{[]string{"import", "--team", "acme", "--from", "parsedmarc", output}, exitDone, "1 file read, 70 duplicates; 0 new records, 0 messages\n", ""},
		{
			[]string{"import", "--team", "acme", "--from", "parsedmarc", broken},
			exitProblem,
			"1 file read, 1 replaced, 1 rejected; 1 new record, 3 messages\n",
			broken + ": line 2: a record cannot be used: count is \"-1\", not a number of messages\n",
		},
		{[]string{"import", "--team", "acme", "--from", "other", output}, exitFailed, "", "dmarcd: --from \"other\": must be parsedmarc\n"},
	} {
		status, stdout, stderr := runProgram(t, server, "", append(tt.args, settings...)...)
		if status != tt.status || tt.stdout != "" && stdout != tt.stdout || tt.args[0] == "import" && stderr != tt.stderr {
			t.Errorf("%q: got status %d, %q and %q, want %d, %q and %q", tt.args, status, stdout, stderr, tt.status, tt.stdout, tt.stderr)
		}
	}
	// The messages equal those of the file without the report that was replaced.
	if _, stdout, _ := runProgram(t, server, "", append([]string{"export", "--team", "acme", "--format", "csv"}, settings...)...); strings.Count(stdout, "\n") != 1+69*30+1 {
		t.Errorf("got %d lines, want the header and %d records", strings.Count(stdout, "\n"), 69*30+1)
	}
}
