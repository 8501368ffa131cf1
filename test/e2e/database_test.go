package e2e_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// recoveryLimit is how long a server may take to notice that its database is back.
const recoveryLimit = 10 * time.Minute

func TestDatabaseOutOfReach(t *testing.T) {
	t.Parallel()
	onPostgres(t, exampleZone, func(t *testing.T, in *installation) {
		in.mayLogErrors = true
		p, through := startProxy(t, in.db.DSN)
		s := in.serve("DMARCD_DATABASE=" + through)
		before := s.add("example.com")

		for range 2 {
			p.cut()
			// A token that was just used is cached for a second.
			for _, r := range otherRequests(in.token) {
				s.send(r).wantStatus(t, http.StatusServiceUnavailable)
			}
			daemon.Eventually(t, recoveryLimit, "the server notices", func() bool {
				return s.get("/no/such/path").status == http.StatusServiceUnavailable
			})
			for _, e := range everywhere() {
				s.send(e.request(in.token)).wantStatus(t, http.StatusServiceUnavailable)
			}
			s.outside("/readyz").wantStatus(t, http.StatusServiceUnavailable)
			s.outside("/healthz").wantStatus(t, http.StatusOK)
			s.outside("/metrics").wantStatus(t, http.StatusOK)
			s.send(request{method: http.MethodGet, path: "/openapi.json"}).wantStatus(t, http.StatusOK)
			s.send(request{method: http.MethodGet, path: "/domains"}).wantStatus(t, http.StatusUnauthorized)

			p.restore()
			daemon.Eventually(t, recoveryLimit, "the server recovers", func() bool {
				return s.get("/reports").status == http.StatusOK && s.outside("/readyz").status == http.StatusOK
			})
			if got := s.read("example.com"); got != before {
				t.Errorf("after the recovery: got %v want %v", got, before)
			}
			s.verify("example.com", "conclusive")
		}
		p.restore() // for the checks in finish
	})
}

func TestDatabaseIsLocked(t *testing.T) {
	t.Parallel()
	onSQLite(t, exampleZone, func(t *testing.T, in *installation) {
		in.mayLogErrors = true
		s := in.serve()
		s.add("example.com")
		report, refusal := s.someReport()
		before := s.read("example.com")
		unlock := in.lockSQLite()
		var asking sync.WaitGroup
		ask := func(r request, want int) {
			asking.Go(func() {
				if a, err := s.try(r); err != nil || a.status != want {
					t.Errorf("%s %s: got status %d, %v want %d: %s", r.method, r.path, a.status, err, want, a.body)
				}
			})
		}
		for _, e := range append(endpoints("example.com"), keptThings(report, refusal)...) {
			want := http.StatusOK
			if e.writes {
				want = http.StatusServiceUnavailable
			}
			ask(e.request(in.token), want)
		}
		for _, r := range verdicts(report, refusal, in.token) {
			ask(r, http.StatusServiceUnavailable)
		}
		asking.Wait()
		s.outside("/healthz").wantStatus(t, http.StatusOK)
		unlock()
		if got := s.read("example.com"); got != before {
			t.Errorf("afterwards: got %v want %v", got, before)
		}
		s.wantCounted("nothing was changed", "example.com", 1, 1)
		s.get("/domains/new.example").wantStatus(t, http.StatusNotFound)
		s.add("new.example")
		s.remove("example.com")
	})
}

// lockSQLite locks the database against all other connections, as soon as no other one writes.
func (in *installation) lockSQLite() (unlock func()) {
	in.t.Helper()
	lock := musttest.Get(in.db.SQL(in.t).Conn(in.t.Context()))(in.t)
	do := func(statement string) {
		in.t.Helper()
		_, err := lock.ExecContext(in.t.Context(), statement)
		musttest.Do(in.t, err)
	}
	do(`PRAGMA busy_timeout = 30000`)
	do(`BEGIN EXCLUSIVE`)
	return func() {
		do(`ROLLBACK`)
		musttest.Do(in.t, lock.Close())
	}
}
