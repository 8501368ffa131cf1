package adversary_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestOneTeamsErrorStopsNoRetention has the removal of what is past its time fail for
// one team, again and again. It goes on for the others.
//
// No request is known that causes such an error, so the test damages the database. That
// rollups go on as well cannot be seen from outside; the tests of the store show it.
func TestOneTeamsErrorStopsNoRetention(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		a := enter(t, db)
		later := a.team("later") // the victim was made before the team with the error, this one after it
		const id = "past its time"
		for _, v := range []*tenant{a.victim, a.mallory, later} {
			if v == later {
				v.add("later.test")
			}
			v.upload([]byte(about(v.name+".test", id, 1, 0).xml()))
		}
		records := func(v *tenant) int {
			return len(list[struct{}](v, "/insights/reports/"+v.report(id).ID+"/records"))
		}
		if got := records(a.victim); got != 2 {
			t.Fatalf("got %d records want 2", got)
		}
		a.d.Stop()
		raw := db.SQL(t)
		var mallory int64
		musttest.Do(t, raw.QueryRowContext(t.Context(), `SELECT id FROM teams WHERE name = 'mallory'`).Scan(&mallory))
		fault := fmt.Sprintf(`CREATE TRIGGER fault BEFORE UPDATE ON reports WHEN OLD.team_id = %d BEGIN SELECT RAISE(ABORT, 'a fault'); END`, mallory)
		if strings.HasPrefix(db.DSN, "postgres") {
			fault = fmt.Sprintf(`CREATE FUNCTION fault() RETURNS trigger AS 'BEGIN RAISE EXCEPTION ''a fault''; END' LANGUAGE plpgsql;
				CREATE TRIGGER fault BEFORE UPDATE ON reports FOR EACH ROW WHEN (OLD.team_id = %d) EXECUTE FUNCTION fault()`, mallory)
		}
		musttest.Get(raw.ExecContext(t.Context(), fault))(t)
		// What is past its time is removed at the start, and every hour after that.
		a.in = a.in.With("DMARCD_RETENTION_RECORDS=1h")
		a.serve()
		later.origin = a.victim.origin
		eventually(t, patience, "retention goes on for the other teams", func() bool {
			return records(a.victim) == 0 && records(later) == 0
		})
		if got := records(a.mallory); got != 2 {
			t.Errorf("the team with the error: got %d records want 2", got)
		}
		eventually(t, patience, "the error is logged", func() bool { return strings.Contains(a.d.Log(), "a fault") })
		a.watch("one team's error", func() { a.work(1) })
		a.d.Stop()
	})
}

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
