package adversary_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestSilentDomains has one team watch domains whose DNS does not answer, while
// the schedule of another team goes on.
func TestSilentDomains(t *testing.T) {
	domains := 300
	if soak {
		domains = 1000
	}
	const interval = 5 * time.Second
	onEach(t, func(t *testing.T, a *arena) {
		publish := func(policy string) {
			t.Helper()
			a.dns.setZone(t, `_dmarc.watched.test. 1 TXT "v=DMARC1; p=`+policy+`"`) // no cache has it for long
		}
		publish("reject")
		a.victim.add("watched.test")
		var names strings.Builder
		for i := range domains {
			fmt.Fprintf(&names, "d%d%s\n", i, silentSuffix)
		}
		if r := a.in.Run(t, names.String(), "domain", "add", "--team", "mallory", "-"); r.Status != 0 {
			t.Fatalf("domain add: got status %d want 0: %s", r.Status, r.Stderr)
		}
		a.watch("silent domains", func() {
			eventually(t, patience, "the silent domains are checked", func() bool { return a.dns.silent.Load() > int64(domains) })
			for _, policy := range []string{"none", "quarantine", "reject"} {
				publish(policy)
				eventually(t, patience, "the schedule finds p="+policy, func() bool {
					var domain struct {
						Policy string `json:"dmarc_policy"`
					}
					a.victim.get("/domains/watched.test", &domain)
					return domain.Policy == policy
				})
			}
		})
		a.d.Stop()
	}, "DMARCD_SCHEDULE_INTERVAL="+interval.String())
}
