package e2e_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// TestParseReadsEveryWrapping parses a report from files and standard input, without a
// database.
func TestParseReadsEveryWrapping(t *testing.T) {
	t.Parallel()
	onSQLite(t, "", func(t *testing.T, in *installation) {
		folder := t.TempDir()
		report := about("example.com", "42", 7, 3)
		const facts = "\taggregate\tReporter Inc.\t42\texample.com\t1794614400\t1794700799\t2\t10\t7\n"
		var want string
		args := []string{"parse", "--summary"}
		for _, w := range wrappings() {
			path := filepath.Join(folder, w.name)
			writeFiles(t, folder, w.name, w.wrap(report.xml()))
			args = append(args, path)
			want += path + facts
		}
		if r := in.run(command{args: args}); r.Status != 0 || r.Stdout != want {
			t.Errorf("got status %d and\n%swant 0 and\n%s", r.Status, r.Stdout, want)
		}
		r := in.run(command{args: []string{"parse", "--json", "-"}, stdin: gzipped(report.xml())})
		var parsed []corpusReport
		if err := json.Unmarshal([]byte(r.Stdout), &parsed); err != nil || len(parsed) != 1 {
			t.Fatalf("got %v and %d reports want one", err, len(parsed))
		}
		if got := parsed[0]; got.ReportID != "42" || got.Messages != 10 || got.Compliant != 7 || got.Records != 2 {
			t.Errorf("got %+v want what was sent", got)
		}

		writeFiles(t, folder, "note.txt", "no report")
		refused := in.run(command{args: []string{"parse", "--summary", filepath.Join(folder, "note.txt"), filepath.Join(folder, "report.xml")}})
		if refused.Status != 1 || refused.Stdout != filepath.Join(folder, "report.xml")+facts || !strings.Contains(refused.Stderr, "note.txt") {
			t.Errorf("with something that is no report: got status %d, %q and %q want 1, the report, and the reason",
				refused.Status, refused.Stdout, refused.Stderr)
		}
		if missing := in.run(command{args: []string{"parse", filepath.Join(folder, "missing")}}); missing.Status != 2 {
			t.Errorf("a file that is not there: got status %d want 2", missing.Status)
		}
	})
}
