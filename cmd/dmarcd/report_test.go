package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/packtest"
)

// TestRetryIsForOneEntry retries one member of an archive. The others are counted once and
// stay listed until they are retried too.
func TestRetryIsForOneEntry(t *testing.T) {
	t.Parallel()
	folder, run := installation(t)
	type entry struct{ ID, Member string }
	rejected := func() (left []entry) {
		t.Helper()
		musttest.Do(t, json.Unmarshal([]byte(run(exitDone, "", "report", "rejected", "--team", "acme", "--json")), &left))
		return left
	}
	run(exitDone, "", "team", "create", "acme")
	run(exitDone, "", "domain", "add", "--team", "acme", "example.com")
	archive := filepath.Join(folder, "two.zip")
	records := []string{recordFrom("192.0.2.1"), recordFrom("192.0.2.2")}
	content := packtest.Zip("a.xml", reportOf("a.example", records...), "b.xml", reportOf("b.example", records...))
	musttest.Do(t, os.WriteFile(archive, content, 0o600))
	run(exitProblem, "1 file read, 2 rejected; 0 new records, 0 messages\n", "import", "--team", "acme", "--limit-records=1", archive)

	both := rejected()
	if len(both) != 2 {
		t.Fatalf("got %+v, want an entry for each member", both)
	}
	run(exitDone, "1 of 1 accepted\n", "report", "retry", "--team", "acme", both[0].ID)
	if left := rejected(); len(left) != 1 || left[0] != both[1] {
		t.Errorf("got %+v, want %+v to stay", left, both[1])
	}
	run(exitDone, "1 of 1 accepted\n", "report", "retry", "--team", "acme")
	if left := rejected(); len(left) != 0 {
		t.Errorf("got %+v, want nothing left", left)
	}
	if listed := run(exitDone, "", "report", "list", "--team", "acme"); strings.Count(listed, "rep_") != 2 {
		t.Errorf("got %s, want each report once", listed)
	}
}

// TestReportListShowsUnclaimedReports lists a report before and after its domain is added.
func TestReportListShowsUnclaimedReports(t *testing.T) {
	t.Parallel()
	folder, run := installation(t)
	run(exitDone, "", "team", "create", "acme")
	file := filepath.Join(folder, "report.xml")
	musttest.Do(t, os.WriteFile(file, []byte(reportOf("a.example", recordFrom("192.0.2.1"))), 0o600))
	run(exitDone, "", "import", "--team", "acme", file)
	for _, want := range []string{"unclaimed", "counted"} {
		if want == "counted" {
			run(exitDone, "", "domain", "add", "--team", "acme", "example.com")
		}
		fields := strings.Fields(strings.Split(run(exitDone, "", "report", "list", "--team", "acme"), "\n")[1])
		if got := fields[9]; got != want {
			t.Errorf("got the state %q in %q, want %q", got, fields, want)
		}
	}
}

// TestReportStates excludes, includes and deletes reports on the command line.
func TestReportStates(t *testing.T) {
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
