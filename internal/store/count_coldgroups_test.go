package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/cold"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestSmallGroupsAreMerged freezes few records each week: they share a block until it is large
// enough.
func TestSmallGroupsAreMerged(t *testing.T) {
	if testing.Short() {
		return
	}
	eachInbox(t, func(in *inbox) {
		in.add(ours, "other.example")
		blocks := func(want int) {
			in.Helper()
			before := in.everything()
			in.freeze()
			if got := in.number(`SELECT COUNT(*) FROM cold_blocks`); got != want {
				in.Errorf("got %d blocks, want %d", got, want)
			}
			records := 0
			for _, of := range before.Records {
				records += len(of)
			}
			if got := in.frozen(); got != records {
				in.Errorf("got %d records in blocks, want %d", got, records)
			}
			fresh := *in // without a cache
			fresh.store = in.db.Open(in, store.Options{Now: in.clock.Now})
			fresh.team = fresh.store.Team(in.team.ID())
			fresh.wantSame("frozen", before)
		}
		receive := func(id string, rows int) {
			in.Helper()
			in.receive(mixed(id, dmarcd.DayOf(in.clock.Now()), rows))
			in.clock.advance(ofDays(7))
		}
		find := func(id string) dmarcd.ReportID {
			in.Helper()
			reports := musttest.Get(in.team.Reports(in.Context(), store.ReportFilter{ExternalID: id}, 0, 1))(in)
			return reports[0].ID
		}
		for week := range 4 {
			receive(fmt.Sprint(week), 2)
			blocks(1)
		}
		// Removed records leave the block; excluded ones stay.
		musttest.Get(in.team.SetReportCounted(in.Context(), find("1"), false, decided("report.exclude")))(in)
		in.must(in.team.DeleteReport(in.Context(), find("2"), decided("report.delete")))
		in.purge()
		in.clock.advance(time.Hour)
		blocks(1)
		// A group that waits for its rewriting stays alone.
		in.must(in.team.DeleteReport(in.Context(), find("3"), decided("report.delete")))
		in.purge()
		in.receive(mixed("4", dmarcd.DayOf(in.clock.Now()), 2))
		in.freeze()
		if got := in.number(`SELECT COUNT(*) FROM cold_blocks`); got != 2 {
			in.Errorf("got %d blocks, want 2", got)
		}
		in.clock.advance(ofDays(7))
		blocks(2)
		receive("5", 2)
		blocks(2) // with report 4
		receive("large", 150)
		blocks(2)
		receive("6", 2)
		blocks(3)
		receive("7", 2)
		blocks(3)
		// Expired records leave their blocks week by week.
		for left := 5; left > 0; left-- {
			in.expire(store.Retention{Records: ofDays(35), Counters: ofDays(1000)})
			in.clock.advance(ofDays(7))
			in.freeze()
		}
		in.expire(store.Retention{Records: ofDays(35), Counters: ofDays(1000)})
		in.clock.advance(ofDays(7))
		blocks(0)
	})
}

// TestSmallGroupsOfManyReports freezes few records of many reports: a group has a limited number of
// them.
func TestSmallGroupsOfManyReports(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		const reports, limit = 1_100, 2_000
		for round := range 2 {
			all := []dmarcd.NewReport{report(fmt.Sprint(round), ours, storetest.Passed(ours, 1))}
			for i := 1; i < reports; i++ {
				all = append(all, report(fmt.Sprint(round, "-", i), ours))
			}
			in.receive(all...)
			storetest.All(in, func(ctx context.Context) (bool, error) { return in.store.Freeze(ctx, freezeAll) })
		}
		if got := in.number(`SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM reports WHERE cold > 0 GROUP BY cold) AS sizes`); got < reports || got > limit {
			in.Errorf("got a group of %d reports, want at most %d", got, limit)
		}
	})
}

// TestDamagedGroupStopsNoOther rewrites the group after a damaged one, and freezes new records.
func TestDamagedGroupStopsNoOther(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		in.receive(mixed("damaged", today, 1))
		in.freeze()
		// It is the first one to be rewritten.
		in.damage(`UPDATE reports SET cold = 1 WHERE cold > 0`)
		in.damage(`UPDATE cold_blocks SET id = 1, block = checksum, rewrite_at = 1`)
		fresh := in.db.Open(in, store.Options{Now: in.clock.Now}) // without a cache
		freeze := func() {
			in.Helper()
			if _, err := fresh.Freeze(in.Context(), freezeAll); !errors.Is(err, cold.ErrDamaged) {
				in.Errorf("got %v, want %v", err, cold.ErrDamaged)
			}
		}
		receipts := in.receive(report("stays", ours, storetest.Passed(ours, 1)), report("goes", ours, storetest.Passed(ours, 1)))
		freeze()
		if got := in.number(`SELECT COUNT(*) FROM reports WHERE cold = 0`); got != 0 {
			in.Errorf("got %d reports that were not frozen", got)
		}
		before := in.frozen()
		in.must(in.team.DeleteReport(in.Context(), receipts[1].ID, decided("report.delete")))
		storetest.All(in, in.store.Purge)
		in.clock.advance(2 * time.Hour)
		freeze()
		if got := in.frozen(); got != before-1 {
			in.Errorf("got %d records in blocks, want %d without the deleted one", got, before-1)
		}
	})
}

// TestDamagedSmallGroup freezes records beside a damaged block.
func TestDamagedSmallGroup(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		in.receive(mixed("old", today, 1))
		in.freeze()
		in.damage(`UPDATE cold_blocks SET block = checksum`)
		in.receive(mixed("new", today, 1))
		fresh := in.db.Open(in, store.Options{Now: in.clock.Now}) // without a cache
		storetest.All(in, func(ctx context.Context) (bool, error) { return fresh.Freeze(ctx, freezeAll) })
		reports := musttest.Get(in.team.Reports(in.Context(), store.ReportFilter{ExternalID: "new"}, 0, 1))(in)
		records, _, err := fresh.Team(in.team.ID()).Records(in.Context(), reports[0].ID, store.RecordCursor{}, 100)
		if err != nil || len(records) == 0 || in.number(`SELECT COUNT(*) FROM cold_blocks`) != 2 {
			in.Errorf("got %d records, %v", len(records), err)
		}
	})
}

func TestDamagedColdBlocks(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.fill()
		in.freeze()
		in.damage(`DELETE FROM records`)
		reports := musttest.Get(in.team.Reports(in.Context(), store.ReportFilter{ExternalID: "2"}, 0, 1))(in)
		for _, step := range []struct {
			name, statement, problem string
			err                      error
		}{
			{"other bytes", `UPDATE cold_blocks SET block = checksum`, cold.ErrDamaged.Error(), cold.ErrDamaged},
			{"too large", `UPDATE cold_blocks SET bytes = 1000000000`, cold.ErrDamaged.Error(), cold.ErrDamaged},
			{"no block", `DELETE FROM cold_blocks`, "a report has lost its block of old records", nil},
		} {
			fresh := *in // without a cache
			fresh.store = in.db.Open(in, store.Options{Now: in.clock.Now})
			fresh.team = fresh.store.Team(in.team.ID())
			in.damage(step.statement)
			if _, _, err := fresh.team.Records(in.Context(), reports[0].ID, store.RecordCursor{}, 10); !errors.Is(err, step.err) {
				in.Errorf("%s: got %v, want %v", step.name, err, step.err)
			}
			problem := musttest.Get(fresh.store.Integrity(in.Context()))(in)
			if !strings.Contains(problem, step.problem) {
				in.Errorf("%s: got the problem %q, want %q", step.name, problem, step.problem)
			}
		}
	})
}

// TestPurgeDuringFreeze removes records while the transaction that freezes them is about to commit.
// They are removed from the blocks later, like others.
func TestPurgeDuringFreeze(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		// remove hides records before the freeze, purge removes them during it.
		remove func(in *inbox)
		purge  func(in *inbox) error
		// left is the number of the 24 records that stay.
		left int
	}{
		{
			"a domain", func(in *inbox) { in.delete("other.example") },
			func(in *inbox) error { _, err := in.store.Purge(in.Context()); return err }, 18,
		},
		{
			"the retention", func(*inbox) {},
			func(in *inbox) error {
				_, err := in.store.Expire(in.Context(), store.Retention{Records: time.Hour, Originals: time.Hour})
				return err
			}, 0,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db storetest.DB) {
				if db.Engine == "sqlite" {
					return
				}
				clock, committing, during := newClock(), new(atomic.Bool), func() {}
				s := db.Open(t, store.Options{Now: clock.Now, Statement: func(query string) {
					if strings.HasPrefix(query, `UPDATE cold_blocks SET rewrite_at = 0 `) && committing.CompareAndSwap(true, false) {
						during()
					}
				}})
				in := &inbox{T: t, db: db, clock: clock, store: s, team: newTeam(t, s, "a")}
				in.add(ours, "other.example")
				in.receive(mixed("1", today-3, 3))
				row.remove(in)
				purged := make(chan error, 1)
				during = func() {
					go func() { purged <- row.purge(in) }()
					in.awaitLock(purged) // it ends, or waits for the freeze
				}
				committing.Store(true)
				if _, err := s.Freeze(t.Context(), freezeAll); err != nil && !errors.Is(err, dmarcd.ErrTemporary) {
					t.Fatal(err)
				}
				if committing.Load() {
					t.Fatal("nothing was frozen")
				}
				in.must(<-purged)
				clock.advance(ofDays(10))
				in.freeze()
				in.purge()
				if got := in.frozen(); got != row.left {
					t.Errorf("got %d records in blocks, want %d", got, row.left)
				}
				in.sound()
			})
		})
	}
}
