package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// A team for which a job always fails does not delay it for other teams, and is retried less and
// less often.
func TestOneTeamsFailureStopsNoOther(t *testing.T) {
	retained := store.Retention{Records: 24 * time.Hour}
	for _, job := range []struct {
		name string
		step func(context.Context, *store.Store) (bool, error)
		// prepare gives the team something to do.
		prepare func(in *inbox)
		// breaks makes the job fail for the team with this id; fixes undoes it.
		breaks func(team dmarcd.TeamID) string
		fixes  string
		// left counts the remaining work of all teams.
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
			step: func(ctx context.Context, s *store.Store) (bool, error) { return s.Expire(ctx, retained) },
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
				raw := in.sql()
				exec := func(statement string) {
					musttest.Get(raw.ExecContext(in.Context(), statement))(in)
				}
				left := func(team string) (n int) {
					in.must(raw.QueryRowContext(in.Context(), fmt.Sprintf(job.left, "'"+team+"'")).Scan(&n))
					return n
				}
				bad := musttest.Get(in.store.TeamByName(in.Context(), "a"))(in)
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

// TestFailingPurgeBlocksNoOther makes the purge of a domain and of a report fail. Later ones are
// purged.
func TestFailingPurgeBlocksNoOther(t *testing.T) {
	if storetest.Distributed() {
		return // the tables of the test would have to be distributed
	}
	eachInbox(t, func(in *inbox) {
		names := []string{"a.example", "b.example", "c.example"}
		in.add(names...)
		receipts := in.receive(report("1", "a.example", storetest.Passed("c.example", 1)), report("2", "a.example", storetest.Passed("c.example", 2)))
		for _, receipt := range receipts {
			in.must(in.team.DeleteReport(in.Context(), receipt.ID))
		}
		for _, name := range names[:2] {
			in.clock.advance(time.Second)
			in.delete(name)
		}
		in.damage(`CREATE TABLE broken_reports (team_id BIGINT, id BIGINT, FOREIGN KEY (team_id, id) REFERENCES reports (team_id, id))`)
		in.damage(`CREATE TABLE broken_domains (team_id BIGINT, id BIGINT, FOREIGN KEY (team_id, id) REFERENCES domains (team_id, id))`)
		in.damage(fmt.Sprintf(`INSERT INTO broken_reports (team_id, id) SELECT team_id, id FROM reports WHERE id = %d`, receipts[0].ID))
		in.damage(`INSERT INTO broken_domains (team_id, id) SELECT team_id, id FROM domains WHERE name = 'a.example'`)
		failures := 0
		for range 20 {
			more, err := in.store.Purge(in.Context())
			if err != nil {
				failures++
			}
			if !more && err == nil {
				break
			}
		}
		left := func() [2]int {
			return [2]int{in.number(`SELECT COUNT(*) FROM reports WHERE state = 'deleted'`), in.number(`SELECT COUNT(*) FROM domains WHERE deleted_at > 0`)}
		}
		if got := left(); got != [2]int{1, 1} || failures == 0 || failures > 3 {
			in.Errorf("got %v reports and domains left after %d failures, want those that fail", got, failures)
		}
		in.damage(`DROP TABLE broken_reports`)
		in.damage(`DROP TABLE broken_domains`)
		in.clock.advance(time.Hour)
		in.purge()
		if got := left(); got != [2]int{} {
			in.Errorf("got %v reports and domains left after the cause is gone, want none", got)
		}
	})
}

func TestJobLeases(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	db := storetest.Postgres(t)
	now := time.Unix(1_700_000_000, 0)
	options := store.Options{Now: func() time.Time { return now }}
	a, b := db.Open(t, options), db.Open(t, options)
	claim := func(what string, s *store.Store, early, want bool) {
		t.Helper()
		got, err := s.ClaimJob(t.Context(), "expire", 30*time.Second, early)
		if err != nil || got != want {
			t.Errorf("%s: got %t, %v; want %t", what, got, err, want)
		}
	}
	end := func(s *store.Store, next time.Duration) {
		t.Helper()
		if err := s.EndJob(t.Context(), "expire", next); err != nil {
			t.Error(err)
		}
	}
	claim("a new job", a, false, true)
	claim("held by another", b, false, false)
	claim("held by another, early", b, true, false)
	now = now.Add(20 * time.Second)
	claim("extended", a, true, true)
	end(b, 0) // without effect
	now = now.Add(20 * time.Second)
	claim("extended lease", b, true, false)
	end(a, time.Minute)
	claim("not due", b, false, false)
	claim("not due, of the last holder", a, false, false)
	claim("early", b, true, true)
	now = now.Add(31 * time.Second)
	claim("the holder died, not due", a, false, false)
	now = now.Add(30 * time.Second)
	claim("the holder died", a, false, true)
	claim("lost", b, true, false)
}

func TestJobsOfSQLiteNeedNoLease(t *testing.T) {
	t.Parallel()
	s := storetest.SQLite(t).Open(t, store.Options{})
	for range 2 {
		if claimed, err := s.ClaimJob(t.Context(), "expire", time.Hour, false); err != nil || !claimed {
			t.Errorf("got %t, %v; want a claim", claimed, err)
		}
	}
	if err := s.EndJob(t.Context(), "expire", time.Hour); err != nil {
		t.Error(err)
	}
}
