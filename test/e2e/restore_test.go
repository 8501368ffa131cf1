package e2e_test

import (
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dmarcd/dmarcd/test/daemon"
)

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
		file := filepath.Join(t.TempDir(), "backup.db")
		in.do("backup", file)
		some(10)
		close(stop)
		group.Wait()
		all := sent.Load()
		s.Stop()

		restored := in.serve("DMARCD_RATE_LIMIT=0", unscheduled, "DMARCD_DATABASE="+file)
		in.healthy("DMARCD_DATABASE=" + file)
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
