package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// A team for which a job always fails delays it for no other team, and is retried less
// and less often.
func TestOneTeamsFailureStopsNoOther(t *testing.T) {
	keep := store.Retention{Records: 24 * time.Hour}
	for _, job := range []struct {
		name string
		step func(context.Context, *store.Store) (bool, error)
		// prepare leaves the team something to do.
		prepare func(in *inbox)
		// breaks has the job fail for the team with that id, fixes undoes it.
		breaks func(team dmarcd.TeamID) string
		fixes  string
		// left counts what is still to be done for all teams.
		left string
	}{
		{
			name: "rollups",
			step: func(ctx context.Context, s *store.Store) (bool, error) { return s.BuildRollups(ctx) },
			prepare: func(in *inbox) {
				in.add(ours)
				in.receive(storetest.Aggregate("1", ours, today-60, storetest.Passed(ours, 3000)),
					storetest.Aggregate("2", ours, today-61, storetest.Passed(ours, 3000)))
			},
			breaks: func(team dmarcd.TeamID) string {
				return fmt.Sprintf(`CREATE UNIQUE INDEX broken ON day_rollups (team_id) WHERE team_id = %d`, team)
			},
			fixes: `DROP INDEX broken`,
			left:  `SELECT COUNT(*) FROM team_days WHERE in_rollup < changes AND team_id IN (SELECT id FROM teams WHERE name IN (%s))`,
		},
		{
			name: "retention",
			step: func(ctx context.Context, s *store.Store) (bool, error) { return s.Expire(ctx, keep) },
			prepare: func(in *inbox) {
				in.add(ours)
				in.receive(storetest.Aggregate("1", ours, today-60, storetest.Passed(ours, 1)),
					storetest.Aggregate("2", ours, today-60, storetest.Passed(ours, 1)))
			},
			breaks: func(team dmarcd.TeamID) string {
				return fmt.Sprintf(`CREATE UNIQUE INDEX broken ON reports (team_id, emptied_at) WHERE team_id = %d AND emptied_at > 0`, team)
			},
			fixes: `DROP INDEX broken`,
			left:  `SELECT COUNT(*) FROM reports WHERE emptied_at = 0 AND team_id IN (SELECT id FROM teams WHERE name IN (%s))`,
		},
		{
			name: "purge",
			step: func(ctx context.Context, s *store.Store) (bool, error) { return s.Purge(ctx) },
			prepare: func(in *inbox) {
				in.add(ours)
				in.delete(ours)
			},
			breaks: func(team dmarcd.TeamID) string {
				distribute := ""
				if storetest.Distributed() {
					distribute = `SELECT create_distributed_table('breaking', 'team_id', colocate_with => 'domains');`
				}
				return fmt.Sprintf(`CREATE TABLE broken AS SELECT team_id, id FROM domains WHERE team_id = %d;
					CREATE TABLE breaking (team_id BIGINT, id BIGINT, FOREIGN KEY (team_id, id) REFERENCES domains (team_id, id)); %s
					INSERT INTO breaking SELECT team_id, id FROM broken`, team, distribute)
			},
			fixes: `DROP TABLE breaking`,
			left:  `SELECT COUNT(*) FROM domains WHERE deleted_at > 0 AND team_id IN (SELECT id FROM teams WHERE name IN (%s))`,
		},
	} {
		t.Run(job.name, func(t *testing.T) {
			eachInbox(t, func(in *inbox) {
				other := *in
				other.team = newTeam(t, in.store, "b")
				job.prepare(in)
				job.prepare(&other)
				raw := in.db.SQL(in)
				exec := func(statement string) {
					_, err := raw.ExecContext(in.Context(), statement)
					in.must(err)
				}
				left := func(team string) (n int) {
					in.must(raw.QueryRowContext(in.Context(), fmt.Sprintf(job.left, "'"+team+"'")).Scan(&n))
					return n
				}
				bad, err := in.store.TeamByName(in.Context(), "a")
				in.must(err)
				exec(job.breaks(bad.ID))

				run := func() error {
					for {
						more, err := job.step(in.Context(), in.store)
						if err != nil || !more {
							return err
						}
					}
				}
				if run() == nil {
					in.Error("got no error of the team that fails")
				}
				in.must(run()) // it rests
				if got := left("b"); got != 0 {
					in.Errorf("%d left to do for the other team, want 0", got)
				}
				if got := left("a"); got == 0 {
					in.Error("nothing left to do for the team that fails")
				}
				failures := 0
				for range 60 {
					in.clock.advance(time.Minute)
					if run() != nil {
						failures++
					}
				}
				if failures < 4 || failures > 15 {
					in.Errorf("tried %d times in an hour, want fewer and fewer", failures)
				}
				exec(job.fixes)
				in.clock.advance(time.Hour)
				in.must(run())
				if got := left("a"); got != 0 {
					in.Errorf("%d left to do after the cause is gone, want 0", got)
				}
				in.sound()
			})
		})
	}
}
