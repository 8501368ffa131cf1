package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestReportVerdicts excludes, includes and deletes reports on the command line.
func TestReportVerdicts(t *testing.T) {
	t.Parallel()
	folder, run := installation(t)
	states := func() map[string]string {
		t.Helper()
		found := map[string]string{}
		for _, state := range []string{"counted", "excluded", "held", "replaced"} {
			var reports []struct{ ID string }
			musttest.Do(t, json.Unmarshal([]byte(run(exitDone, "", "report", "list", "--team", "acme", "--state", state, "--json")), &reports))
			for _, r := range reports {
				found[r.ID] = state
			}
		}
		return found
	}
	run(exitDone, "", "team", "create", "acme")
	run(exitDone, "", "domain", "add", "--team", "acme", "example.com")
	files := []string{filepath.Join(folder, "a.xml"), filepath.Join(folder, "b.xml"), filepath.Join(folder, "c.xml")}
	for i, content := range []string{reportOf("a.example", recordFrom("192.0.2.1")), reportOf("b.example", recordFrom("192.0.2.2")), "no report"} {
		musttest.Do(t, os.WriteFile(files[i], []byte(content), 0o600))
	}
	run(exitProblem, "", append([]string{"import", "--team", "acme"}, files...)...)
	var first string
	for id := range states() {
		first = id
	}

	run(exitDone, "1 of 1 excluded\n", "report", "exclude", "--team", "acme", first)
	if got := states(); got[first] != "excluded" || len(got) != 2 {
		t.Errorf("got %v, want %s excluded", got, first)
	}
	run(exitDone, "1 of 1 included\n", "report", "include", "--team", "acme", first)
	run(exitDone, "1 report excluded\n", "report", "exclude", "--team", "acme", "--org", "A.example")
	run(exitDone, "0 reports excluded\n", "report", "exclude", "--team", "acme", "--org", "unknown.example")
	run(exitDone, "1 report included\n", "report", "include", "--team", "acme", "--from", "2001-01-01")
	run(exitProblem, "0 of 1 excluded\n", "report", "exclude", "--team", "acme", "rep_zzz")
	for _, args := range [][]string{
		{"report", "exclude", "--team", "acme"},
		{"report", "exclude", "--team", "acme", "--org", "x", first},
		{"report", "exclude", "--team", "acme", "--from", "yesterday"},
		{"report", "list", "--team", "acme", "--state", "odd"},
		{"report", "list", "--team", "acme", "--limit", "-1"},
		{"report", "rejected", "--team", "acme", "--limit", "0"},
	} {
		run(exitFailed, "", args...)
	}
	run(exitProblem, "", "report", "include", "--team", "acme", "nonsense")
	run(exitProblem, "", "report", "delete", "--team", "acme", "dom_1")

	var rejected []struct{ ID string }
	if err := json.Unmarshal([]byte(run(exitDone, "", "report", "rejected", "--team", "acme", "--json")), &rejected); err != nil || len(rejected) != 1 {
		t.Fatalf("got %v, %v, want one rejected", rejected, err)
	}
	run(exitDone, "2 of 2 deleted\n", "report", "delete", "--team", "acme", first, rejected[0].ID)
	run(exitProblem, "0 of 2 deleted\n", "report", "delete", "--team", "acme", first, rejected[0].ID)
	if got := states(); len(got) != 1 {
		t.Errorf("got %v, want one report left", got)
	}
}
