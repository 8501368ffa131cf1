package e2e_test

import (
	"os"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// failoverLimit bounds the way from one server to the other on a busy machine.
const failoverLimit = 10 * time.Minute

// TestFailover kills the primary under load and promotes its synchronous standby: the daemon
// goes on without a restart, and nothing that was acknowledged is missing.
func TestFailover(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	enough := 20 // reports by each way in, before and after
	if os.Getenv("DMARCD_SOAK") != "" {
		enough = 1000
	}
	pair := storetest.StartPair(t)
	installed(reporterZone(), func(t *testing.T, in *installation) {
		in.mayLogErrors = true
		s := in.serve(receiving()...)
		s.add("example.com")
		ledger := newReportLedger()
		ways := intakeLoads()
		stop := make(chan struct{})
		var sending sync.WaitGroup
		for _, l := range loaders(ledger, ways, in.reportAddress("default", "example.com", reporting), 2) {
			sending.Go(func() { l.run(s, stop) })
		}
		acknowledgedBeyond := func(before map[string]int) func() bool {
			return func() bool {
				for _, way := range ways {
					if ledger.times(acknowledged)[way.name] < before[way.name]+enough {
						return false
					}
				}
				return true
			}
		}
		daemon.Eventually(t, failoverLimit, "reports come in", acknowledgedBeyond(nil))
		pair.KillPrimary()
		deferrals := ledger.times(deferred)["upload"]
		daemon.Eventually(t, failoverLimit, "an upload is deferred", func() bool { return ledger.times(deferred)["upload"] > deferrals })
		pair.Promote()
		daemon.Eventually(t, failoverLimit, "reports come in again", acknowledgedBeyond(ledger.times(acknowledged)))
		close(stop)
		sending.Wait()
		ledger.settle(s)
		ledger.wantNoRefusals(t)
		t.Logf("acknowledged %v, deferred %v", ledger.times(acknowledged), ledger.times(deferred))
		s.Stop()
		in.healthy(receiving()...)
	})(t, pair.DB)
}
