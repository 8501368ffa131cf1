package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
)

func TestExportWritesWhatWasImported(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, "")
	folder := t.TempDir()
	settings := []string{"--data=" + folder, "--database=" + filepath.Join(folder, "dmarcd.db")}
	run := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		status, stdout, stderr := runProgram(t, server, "", append(args, settings...)...)
		if status != want {
			t.Fatalf("%q: got status %d and %q, want %d", args, status, stderr, want)
		}
		return stdout, stderr
	}
	report := filepath.Join(folder, "report.xml")
	if err := os.WriteFile(report, []byte(reportOf("receiver.example", recordFrom("192.0.2.1"), recordFrom("192.0.2.2"))), 0o600); err != nil {
		t.Fatal(err)
	}
	run(exitDone, "team", "create", "acme")
	run(exitDone, "domain", "add", "--team", "acme", "example.com")
	run(exitDone, "import", "--team", "acme", report)

	stdout, _ := run(exitDone, "export", "--team", "acme")
	lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	var first struct {
		Domain       string `json:"domain"`
		SourceIP     string `json:"source_ip"`
		Organization string `json:"organization"`
	}
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil || len(lines) != 2 || first.Domain != "example.com" ||
		first.SourceIP != "192.0.2.1" || first.Organization != "receiver.example" {
		t.Errorf("got %v and %q, want two lines with the records", err, stdout)
	}
	for name, begins := range map[string]string{"all.parquet": "PAR1", "all.csv": "id,domain,", "all.ndjson": `{"id":"rep_`} {
		file := filepath.Join(folder, name)
		if _, stderr := run(exitDone, "export", "--team", "acme", "--domain", "example.com", "--output", file); stderr != "2 records exported to "+file+"\n" {
			t.Errorf("%s: got %q, want the number of records", name, stderr)
		}
		content, err := os.ReadFile(file)
		if err != nil || !bytes.HasPrefix(content, []byte(begins)) {
			t.Errorf("%s: got %v and %.20q, want it to begin with %q", name, err, content, begins)
		}
		if name == "all.parquet" {
			if opened, err := parquet.OpenFile(bytes.NewReader(content), int64(len(content))); err != nil || opened.NumRows() != 2 {
				t.Errorf("got error %v, want a file with two rows", err)
			}
		}
	}
	if stdout, _ := run(exitDone, "export", "--team", "acme", "--from", "2001-01-01", "--to", "2001-01-31"); stdout != "" {
		t.Errorf("got %q, want nothing from before the report", stdout)
	}
	if _, stderr := run(exitProblem, "export", "--team", "acme", "--domain", "other.example", "--output", filepath.Join(folder, "other.csv")); !strings.Contains(stderr, "other.example") {
		t.Errorf("got %q, want the unknown domain named", stderr)
	}
	run(exitFailed, "export", "--team", "acme", "--format", "xlsx")
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if strings.Contains(entry.Name(), "other.csv") {
			t.Errorf("a failed export left %s", entry.Name())
		}
	}
}
