package store_test

import (
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

func TestIntegrityFindsDamage(t *testing.T) {
	rows := []struct{ name, damage, repair, want string }{
		{
			"a team's day", `UPDATE team_days SET compliant = compliant + 1`, `UPDATE team_days SET compliant = compliant - 1`,
			"a team's days",
		},
		{
			"what receivers did in a team's day", `UPDATE team_days SET rejected = rejected + 1`, `UPDATE team_days SET rejected = rejected - 1`,
			"a team's days",
		},
		{
			"a domain's sum", `UPDATE domains SET non_compliant = non_compliant + 1`, `UPDATE domains SET non_compliant = non_compliant - 1`,
			"a domain's sums",
		},
		{
			"a domain's day, and the sums over it",
			`UPDATE domain_days SET dkim = dkim + 1; UPDATE team_days SET dkim = dkim + 1`,
			`UPDATE domain_days SET dkim = dkim - 1; UPDATE team_days SET dkim = dkim - 1`,
			"a domain's days",
		},
		{
			"a report that counts", `UPDATE reports SET state = 'held'`, `UPDATE reports SET state = 'counted'`,
			"a domain's days",
		},
		{
			"a record's count", `UPDATE records SET count = count + 1`, `UPDATE records SET count = count - 1`,
			"a report's counts",
		},
		{
			"a record", `UPDATE records SET share = share + 1 WHERE count = 0`, `UPDATE records SET share = share - 1 WHERE count = 0`,
			"a report has records missing",
		},
		{
			"what is stored", `UPDATE team_usage SET stored = stored + 1`, `UPDATE team_usage SET stored = stored - 1`,
			"what a team has stored",
		},
		{
			"a rollup", `UPDATE day_rollups SET records = records + 1`, `UPDATE day_rollups SET records = records - 1`,
			"a rollup has not the records",
		},
	}
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		in.wantReceived("stored", report("1", ours, storetest.Passed(ours, 5000), storetest.Failed(ours, 3), storetest.Passed(ours, 0)))
		buildRollups(in, in.store)
		for _, row := range rows {
			for statement := range strings.SplitSeq(row.damage, ";") {
				in.damage(statement)
			}
			problem := musttest.Get(in.store.Integrity(in.Context()))(in)
			if !strings.HasPrefix(problem, row.want) || !strings.Contains(problem, "team_") {
				in.Errorf("%s: got %q, want %q and the team", row.name, problem, row.want)
			}
			for statement := range strings.SplitSeq(row.repair, ";") {
				in.damage(statement)
			}
			in.sound()
		}
	})
}
