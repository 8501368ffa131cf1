package e2e_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// faultLimit is how long a fault may take to start or end.
const faultLimit = 10 * time.Minute

// fault is a temporary failure.
type fault struct {
	begin, end func()
	// deferring are the transports that must defer senders meanwhile.
	deferring []string
}

// underLoad sends reports over every transport during faults. No acknowledged report may
// be lost, and all transports must recover without a restart.
func underLoad(in *installation, s *server, settings []string, faults ...fault) {
	t := in.t
	t.Helper()
	in.mayLogErrors = true
	ledger := newReportLedger()
	senders := loaders(ledger, intakeLoads(), in.reportAddress("default", "example.com", settings...), 1)
	stop := make(chan struct{})
	var sending sync.WaitGroup
	defer sending.Wait()
	stopped := sync.OnceFunc(func() { close(stop) })
	defer stopped()
	for _, l := range senders {
		sending.Go(func() { l.run(s, stop) })
	}
	working := func(what string) {
		before := ledger.times(acknowledged)
		daemon.Eventually(t, faultLimit, what+": reports come in by every way", func() bool {
			now := ledger.times(acknowledged)
			return !slices.ContainsFunc(intakeLoads(), func(l intakeLoad) bool { return now[l.name] < before[l.name]+3 })
		})
	}
	working("before")
	for _, f := range faults {
		before := ledger.times(deferred)
		f.begin()
		daemon.Eventually(t, faultLimit, "senders are put off", func() bool {
			now := ledger.times(deferred)
			return !slices.ContainsFunc(f.deferring, func(way string) bool { return now[way] == before[way] })
		})
		s.outside("/healthz").wantStatus(t, http.StatusOK)
		f.end()
		working("after")
	}
	stopped()
	sending.Wait()
	ledger.settle(s)
	ledger.wantNoRefusals(t)
	s.Stop()
	in.healthy(settings...)
	t.Logf("acknowledged %v, put off %v", ledger.times(acknowledged), ledger.times(deferred))
}

func TestFullDiskUnderLoad(t *testing.T) {
	each(t, reporterZone(), func(t *testing.T, in *installation) {
		d := in.onSmallDisk()
		settings := receiving()
		s := in.serve(settings...)
		s.add("example.com")
		full := fault{begin: func() { d.fill(s) }, end: func() { d.empty(s) }, deferring: []string{"smtp"}}
		if in.db.Engine == "sqlite" { // the database is on this disk too
			full.deferring = append(full.deferring, "upload")
		}
		underLoad(in, s, settings, full, full)
	})
}

func TestLockedDatabaseUnderLoad(t *testing.T) {
	t.Parallel()
	onSQLite(t, reporterZone(), func(t *testing.T, in *installation) {
		settings := receiving()
		s := in.serve(settings...)
		s.add("example.com")
		lock := musttest.Get(in.db.SQL(t).Conn(t.Context()))(t)
		defer func() { _ = lock.Close() }() // the transaction has ended
		do := func(statement string) func() {
			return func() {
				// Wait for running writes of the server.
				daemon.Eventually(t, faultLimit, statement, func() bool {
					_, err := lock.ExecContext(t.Context(), statement)
					return err == nil
				})
			}
		}
		// Mail continues: the spool is not in the database.
		underLoad(in, s, settings, fault{begin: do(`BEGIN EXCLUSIVE`), end: do(`ROLLBACK`), deferring: []string{"upload"}})
	})
}

func TestDatabaseOutOfReachUnderLoad(t *testing.T) {
	t.Parallel()
	onPostgres(t, reporterZone(), func(_ *testing.T, in *installation) {
		p, through := startProxy(in.t, in.db.DSN)
		settings := receiving("DMARCD_DATABASE=" + through)
		s := in.serve(settings...)
		s.add("example.com")
		gone := fault{begin: p.cut, end: p.restore, deferring: []string{"upload", "smtp"}}
		underLoad(in, s, settings, gone, gone)
	})
}
