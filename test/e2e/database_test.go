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
const recoveryLimit = 15 * time.Second

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
			daemon.Eventually(t, recoveryLimit, "the server notices", func() bool {
				return s.get("/no/such/path").status == http.StatusServiceUnavailable
			})
			for _, e := range everywhere() {
				if a := s.send(e.request(in.token)); a.status != http.StatusServiceUnavailable {
					t.Errorf("%s: got status %d want 503: %s", e, a.status, a.body)
				}
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
		before := s.add("example.com")
		lock, err := in.db.SQL(t).Conn(t.Context())
		musttest.Do(t, err)
		defer func() { _ = lock.Close() }() // the transaction has ended
		daemon.Eventually(t, recoveryLimit, "the test gets the lock, which the daemon may hold just now", func() bool {
			_, err := lock.ExecContext(t.Context(), `BEGIN EXCLUSIVE`)
			return err == nil
		})
		var asking sync.WaitGroup
		for _, e := range endpoints("example.com") {
			asking.Go(func() {
				want := http.StatusOK
				if e.writes {
					want = http.StatusServiceUnavailable
				}
				a, err := s.try(e.request(in.token))
				if err != nil || a.status != want {
					t.Errorf("%s: got status %d, %v want %d: %s", e, a.status, err, want, a.body)
				}
			})
		}
		asking.Wait()
		s.outside("/healthz").wantStatus(t, http.StatusOK)
		if _, err := lock.ExecContext(t.Context(), `ROLLBACK`); err != nil {
			t.Fatal(err)
		}
		if got := s.read("example.com"); got != before {
			t.Errorf("afterwards: got %v want %v", got, before)
		}
		s.get("/domains/new.example").wantStatus(t, http.StatusNotFound)
		s.add("new.example")
		s.remove("example.com")
	})
}
