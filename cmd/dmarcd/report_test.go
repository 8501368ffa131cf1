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
		if got := fields[8]; got != want {
			t.Errorf("got the state %q in %q, want %q", got, fields, want)
		}
	}
}
