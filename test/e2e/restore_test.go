package e2e_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// backup backs up the database as docs/operating.md says, and returns the setting with which dmarcd
// uses the copy.
func (in *installation) backup() (setting string) {
	in.t.Helper()
	file := filepath.Join(in.t.TempDir(), "backup")
	if in.db.Engine == "sqlite" {
		in.do("backup", file)
		return "DMARCD_DATABASE=" + file
	}
	r := in.run(command{args: []string{"backup", file}})
	if r.Status == 0 || !strings.HasPrefix(r.Stdout, "pg_dump ") {
		in.t.Fatalf("got status %d and %q, want a failure and the command to run", r.Status, r.Stdout)
	}
	restored := storetest.EmptyPostgres(in.t)
	programs := musttest.Get(exec.Command("../../scripts/find-postgres.sh").Output())(in.t)
	for _, line := range []string{r.Stdout, "pg_restore --no-owner --exit-on-error --dbname='" + restored.DSN + "' '" + file + "'"} {
		shell := exec.Command("sh", "-c", line)
		shell.Env = append(os.Environ(), "PATH="+strings.TrimSpace(string(programs))+":"+os.Getenv("PATH"))
		if out, err := shell.CombinedOutput(); err != nil {
			in.t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	return "DMARCD_DATABASE=" + restored.DSN
}

// TestRestoreDrill makes a backup while reports arrive, which must not wait for it, and serves
// from it. It has every report that was acknowledged before the backup began, its counters fit,
// and reports that were sent since can be sent again.
func TestRestoreDrill(t *testing.T) {
	each(t, exampleZone, func(t *testing.T, in *installation) {
		s := in.serve("DMARCD_RATE_LIMIT=0", unscheduled)
		s.add("example.com")
		var (
			sent, acknowledged atomic.Int64
			stop               = make(chan struct{})
			group              sync.WaitGroup
		)
		report := func(n int64) string { return about("example.com", strconv.FormatInt(n, 10), 1, 0).xml() }
		for range 2 {
			group.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					a, err := s.try(uploading(in.token, report(sent.Add(1))))
					if err != nil || a.status != http.StatusCreated {
						t.Errorf("upload: got status %d, %v want 201", a.status, err)
						return
					}
					acknowledged.Add(1)
				}
			})
		}
		some := func(more int64) {
			want := acknowledged.Load() + more
			daemon.Eventually(t, daemon.StartLimit, "reports are acknowledged", func() bool { return acknowledged.Load() >= want })
		}
		some(10)
		before := acknowledged.Load()
		database := in.backup()
		some(10)
		close(stop)
		group.Wait()
		all := sent.Load()
		s.Stop()

		restored := in.serve("DMARCD_RATE_LIMIT=0", unscheduled, database)
		in.healthy(database)
		known := int64(0)
		for n := range all {
			a := restored.send(uploading(in.token, report(n+1)))
			if a.status == http.StatusOK { // a duplicate
				known++
				continue
			}
			a.wantStatus(t, http.StatusCreated)
		}
		if known < before || known >= all {
			t.Errorf("got %d of %d reports in the backup, want the %d from before it and not those from after it", known, all, before)
		}
		restored.wantCounted("after sending all again", "example.com", all, 0)
	})
}
