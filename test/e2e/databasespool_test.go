package e2e_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

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
			return in.serve(receiving("DMARCD_DATA=" + data)...), data
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
