package e2e_test

import (
	"database/sql"
	"net/http"
	"os"
	"path/filepath"
	"strings"
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
		admin, publisher := in.newToken("default", "--scope", "admin"), in.newToken("default", "--scope", "publish")

		for range 2 {
			p.cut()
			// A token that was just used is cached for a second.
			for _, r := range append(otherRequests(admin), recordRequests("example.com", publisher)...) {
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
		report, rejection := s.someReport()
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
		for _, e := range append(endpoints("example.com"), storedThings(report, rejection)...) {
			want := http.StatusOK
			if e.writes || strings.HasSuffix(e.path, "/original") { // a download is noted in the audit log
				want = http.StatusServiceUnavailable
			}
			ask(e.request(in.token), want)
		}
		for _, r := range stateRequests(report, rejection, in.token) {
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

// takeOverLimit is how long it may take until the mail of a dead replica is stored. Others
// take it for dead after about 20 s.
const takeOverLimit = 10 * time.Minute

// TestDatabaseSpoolSurvivesADisk kills a replica with acknowledged mail, once before it has
// stored any of it and once while it stores it, and deletes its data folder. The other
// replica stores every acknowledged report, and none twice.
func TestDatabaseSpoolSurvivesADisk(t *testing.T) {
	t.Parallel()
	onPostgres(t, reporterZone(), func(t *testing.T, in *installation) {
		replica := func() (s *server, data string) {
			data = filepath.Join(t.TempDir(), "data")
			return in.serve(receiving("DMARCD_DATA="+data, "DMARCD_SECRET_FILE="+filepath.Join(in.data, "secret.key"))...), data
		}
		survivor, _ := replica()
		survivor.add("example.com")
		address := in.reportAddress("default", "example.com", reporting)
		ledger := newReportLedger()
		senders := loaders(ledger, []intakeLoad{{"smtp", deliverMail}}, address, 3)
		raw := in.db.SQL(t)
		inSpool := func() (n int) {
			musttest.Do(t, raw.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM spool`).Scan(&n))
			return n
		}

		for _, storing := range []bool{false, true} {
			victim, data := replica()
			before := ledger.times(acknowledged)["smtp"]
			var block *sql.Tx
			if !storing {
				var err error
				if block, err = raw.BeginTx(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				musttest.Get(block.ExecContext(t.Context(), `LOCK TABLE reports IN EXCLUSIVE MODE`))(t)
			}
			var sending sync.WaitGroup
			for _, l := range senders {
				sending.Go(func() { l.run(victim, nil) })
			}
			daemon.Eventually(t, workOffLimit, "mail is acknowledged", func() bool {
				return ledger.times(acknowledged)["smtp"] >= before+30
			})
			victim.Kill()
			sending.Wait()
			musttest.Do(t, os.RemoveAll(data))
			if !storing {
				if got, want := inSpool(), len(ledger.acknowledged); got < want {
					t.Errorf("got %d messages in the spool want the %d acknowledged ones", got, want)
				}
				musttest.Do(t, block.Rollback())
			}
			daemon.Eventually(t, takeOverLimit, "the spool is empty", func() bool { return inSpool() == 0 })
			ledger.settle(survivor)
		}
		ledger.wantNoRefusals(t)
		t.Logf("acknowledged %v", ledger.times(acknowledged))
	})
}

// TestOneServer runs tests one after the other on one server of every engine: to start a server
// costs more than most of them. Each begins without domains.
func TestOneServer(t *testing.T) {
	tests := []struct {
		name string
		test func(t *testing.T, s *server)
	}{
		{"seven endpoints", sevenEndpointsEndToEnd},
		{"verify does not read the body", verifyDoesNotReadTheBody},
		{"purpose is shown", purposeIsShown},
		{"documentation needs no token", documentationNeedsNoToken},
		{"documentation has no parameters", documentationHasNoParameters},
		{"health outside the prefix", healthOutsideThePrefix},
		{"paths are taken as they stand", pathsAreTakenAsTheyStand},
		{"bodies of a creation", bodiesOfACreation},
		{"media types of a creation", mediaTypesOfACreation},
		{"limit of a body", bodiesAreLimited},
		{"names are normalized", namesAreNormalized},
		{"names that are refused", namesThatAreRejected},
		{"names in paths are decoded once", namesInPathsAreDecodedOnce},
		{"conditional requests", conditionalRequests},
		{"HEAD is GET without a body", headIsGetWithoutABody},
		{"summaries", summariesOfDays},
		{"summaries with bad days", summariesWithBadDays},
		{"a deleted domain does not count", deletedDomainDoesNotCount},
		{"unknown clients are unauthorized", outsidersAreUnauthorizedEverywhere},
		{"scheme word in any case", schemeWordInAnyCase},
		{"a team off the whitelist is forbidden", teamOffTheWhitelistIsForbiddenEverywhere},
		{"a read token may only read", readTokenMayOnlyRead},
		{"order of refusals", orderOfRefusals},
		{"what is not HTTP", malformedRequests},
		{"wrong method", wrongMethodReportsTheRightOnes},
		{"bad queries of the additions", badQueriesOfTheAdditions},
		{"a cursor with more behind it", cursorWithMoreBehindIt},
		{"a misplaced token is not repeated", misplacedTokenIsNotRepeated},
		{"the list is ordered by name", listIsOrderedByName},
		{"the list is paged", listIsPaged},
		{"queries of the list", queriesOfTheList},
		{"a long list is compressed on request", longListIsCompressedOnRequest},
	}
	each(t, exampleZone, func(t *testing.T, in *installation) {
		s := in.serve()
		for _, row := range tests {
			t.Run(row.name, func(t *testing.T) {
				whole := in.t
				defer func() { in.t = whole }()
				in.t = t
				for _, name := range s.list() {
					s.remove(name)
				}
				row.test(t, s)
			})
		}
	})
}
