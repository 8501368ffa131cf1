package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/rollup"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// buildRollups builds all rollups that are due.
func buildRollups(t testing.TB, s *store.Store) {
	t.Helper()
	storetest.All(t, s.BuildRollups)
}

// TestRollups reads days with and without a rollup. The result is the same before and
// after rollups are built.
func TestRollups(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours, "example.net")
		rejected := storetest.Failed("mail."+ours, 3000)
		rejected.DKIMResults = []aggregate.DKIMResult{{Domain: "elsewhere.example", Selector: "s", Result: "fail", HumanResult: "body \x1e altered"}}
		quarantined := storetest.Failed(ours, 2)
		quarantined.Disposition, quarantined.SPF, quarantined.Source = aggregate.PolicyQuarantine, "pass", "no \x1f address"
		receive(in, in.team,
			storetest.Aggregate("1", ours, 100, storetest.Passed(ours, 70_000), rejected),
			storetest.Aggregate("2", ours, 101, quarantined), // too few for a rollup
			storetest.Aggregate("3", ours, 102, storetest.Passed(ours, 2000), storetest.Passed(ours, 0)),
			storetest.Aggregate("4", "example.net", 102, storetest.Passed("example.net", 1)),
		)
		before := sentLines(in, in.team, "", dmarcd.Days{})
		if len(before) != 5 {
			in.Fatalf("got %q, want 5 records", before)
		}
		buildRollups(in, in.store)
		if got := in.rows("day_rollups"); got != 2 {
			in.Errorf("got %d rollups, want 2", got)
		}
		// Only the rollups are left.
		in.damage(`DELETE FROM records WHERE report_id IN (SELECT report_id FROM shares WHERE day <> 101)`)
		if diff := cmp.Diff(before, sentLines(in, in.team, "", dmarcd.Days{})); diff != "" {
			in.Errorf("in rollups: -before +after\n%s", diff)
		}
		for day, want := range map[dmarcd.Day]int{99: 0, 100: 2, 101: 1, 102: 2} {
			if got := sentLines(in, in.team, "", daysOf(day, day)); len(got) != want {
				in.Errorf("%s: got %q, want %d records", day, got, want)
			}
		}
	})
}

// TestDomainIsReadFromRollups reads a domain with so many records that rollups are faster
// than rows.
func TestDomainIsReadFromRollups(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours, "example.net")
		var many []aggregate.Record
		for i := range int64(600) {
			many = append(many, storetest.Passed(ours, 5+i%3), storetest.Failed(ours, 5+i%7))
		}
		receive(in, in.team,
			storetest.Aggregate("1", "example.net", 100, storetest.Passed("example.net", 7)),
			storetest.Aggregate("2", ours, 100, many...),
			storetest.Aggregate("3", ours, 101, storetest.Passed(ours, 3)),
		)
		before := sentLines(in, in.team, ours, dmarcd.Days{})
		buildRollups(in, in.store)
		in.damage(`DELETE FROM records WHERE report_id IN (SELECT report_id FROM shares WHERE day = 100)`)
		after := sentLines(in, in.team, ours, dmarcd.Days{})
		if diff := cmp.Diff(before, after); diff != "" || len(after) != len(many)+1 {
			in.Errorf("got %d records, want %d: -before +after\n%s", len(after), len(many)+1, diff)
		}
	})
}

// TestRollupsGrow adds reports to a day with a rollup: they are read from the rows, until
// the rollup is rebuilt because they are many or it is old.
func TestRollupsGrow(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours, "example.net")
		raw := in.sql()
		came := 0
		come := func(name string) {
			came++
			receive(in, in.team, storetest.Aggregate(fmt.Sprint(came), name, 100, storetest.Passed(name, int64(5000+came))))
		}
		records := func() (n int) {
			buildRollups(in, in.store)
			in.must(raw.QueryRowContext(in.Context(), `SELECT records FROM day_rollups`).Scan(&n))
			if got := sentLines(in, in.team, "", daysOf(100, 100)); len(got) != came {
				in.Errorf("%d in the rollup: got %q, want %d records", n, got, came)
			}
			return n
		}
		come(ours)
		if got := records(); got != 1 {
			in.Errorf("got %d records in the first rollup, want 1", got)
		}
		for range 9 {
			come("example.net")
			if got := records(); got != 1 {
				in.Errorf("after %d: got %d records in the rollup, want it left alone", came, got)
			}
		}
		come(ours)
		if got := records(); got != came {
			in.Errorf("got %d records in the rollup, want %d", got, came)
		}
		come(ours)
		in.clock.advance(10 * time.Minute)
		if got := records(); got != came {
			in.Errorf("after some time: got %d records in the rollup, want %d", got, came)
		}
	})
}

// TestRollupsOfWhatGoes checks that a rollup does not contain removed records.
func TestRollupsOfWhatGoes(t *testing.T) {
	for name, remove := range map[string]func(in *inbox){
		"a domain that is deleted": func(in *inbox) { in.delete(ours) },
		"records past their time": func(in *inbox) {
			in.clock.advance(ofDays(50))
			in.expire(store.Retention{Records: ofDays(10), Counters: ofDays(100)})
		},
		"days past their time": func(in *inbox) {
			in.clock.advance(ofDays(50))
			in.expire(store.Retention{Records: ofDays(10), Counters: ofDays(10)})
		},
		"a report that says nothing any more": func(in *inbox) { in.receive(report("1", ours)) },
	} {
		t.Run(name, func(t *testing.T) {
			eachInbox(t, func(in *inbox) {
				in.add(ours)
				in.wantReceived("stored", report("1", ours, storetest.Passed(ours, 5000)))
				buildRollups(in, in.store)
				if got := in.rows("day_rollups"); got != 1 {
					in.Fatalf("got %d rollups, want 1", got)
				}
				remove(in)
				if got := sentLines(in, in.team, "", dmarcd.Days{}); len(got) != 0 {
					in.Errorf("got %q at once, want nothing", got)
				}
				buildRollups(in, in.store)
				if got := in.rows("day_rollups"); got != 0 {
					in.Errorf("got %d rollups, want none", got)
				}
				in.sound()
			})
		})
	}
}

// TestRollupsWhileReportsAreReplaced builds and reads rollups while each report is
// replaced repeatedly. No answer may contain two versions of a report.
func TestRollupsWhileReportsAreReplaced(t *testing.T) {
	if testing.Short() {
		return
	}
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		const reports, versions = 5, 8
		ctx, done := context.WithCancel(in.Context())
		var group errgroup.Group
		group.Go(func() error {
			defer done()
			for version := range int64(versions) {
				for id := range int64(reports) {
					again := storetest.Aggregate(fmt.Sprint(id), ours, 100, storetest.Passed(ours, 5000+version*reports+id))
					if _, err := in.team.Receive(in.Context(), []*dmarcd.Delivery{storetest.Delivery(again)}); err != nil {
						return err
					}
				}
			}
			return nil
		})
		group.Go(func() error {
			for ctx.Err() == nil {
				in.clock.advance(time.Hour)
				if _, err := in.store.BuildRollups(in.Context()); err != nil && !errors.Is(err, dmarcd.ErrTemporary) {
					return err
				}
			}
			return nil
		})
		group.Go(func() error {
			for ctx.Err() == nil {
				seen := make(map[int64]int64)
				err := eachSent(in.Context(), in.team, "", dmarcd.Days{}, func(_ *rollup.Block, _ *rollup.Share, r *rollup.Record) error {
					if before, twice := seen[r.Count%reports]; twice {
						return fmt.Errorf("a report has %d and %d messages at once", before, r.Count)
					}
					seen[r.Count%reports] = r.Count
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		in.must(group.Wait())
		musttest.Get(rollupsReportTheRecords(in.Context(), in.team))(in)
		buildRollups(in, in.store)
		musttest.Get(rollupsReportTheRecords(in.Context(), in.team))(in)
		in.sound()
	})
}

// TestDamagedRollup truncates a rollup at every position.
func TestDamagedRollup(t *testing.T) {
	t.Parallel()
	in := newInbox(t, storetest.SQLite(t))
	in.add(ours)
	in.wantReceived("stored", report("1", ours, storetest.Passed(ours, 5000), storetest.Failed("a."+ours, 7)))
	buildRollups(in, in.store)
	raw := in.sql()
	var block []byte
	in.must(raw.QueryRowContext(in.Context(), `SELECT block FROM day_rollups`).Scan(&block))
	for n := range len(block) + 1 {
		for _, bad := range [][]byte{block[:n], slices.Concat(block[:n], []byte{0xff}, block[min(n+1, len(block)):])} {
			musttest.Get(raw.ExecContext(in.Context(), `UPDATE day_rollups SET block = $1`, bad))(in)
			got, err := sentBy(in.Context(), in.team, "", dmarcd.Days{})
			if n == len(block) && len(bad) == n {
				in.must(err) // not truncated
				continue
			}
			if err == nil && len(bad) != len(block) {
				in.Errorf("cut at %d of %d: got %q, want an error", n, len(block), got)
			}
		}
	}
}

// BenchmarkRollups reads 30 days of 33,000 records each.
func BenchmarkRollups(b *testing.B) {
	s := storetest.SQLite(b).Open(b, store.Options{})
	created := storetest.Team(b, s, "a")
	team := s.Team(created.ID)
	const days, reports, records = 30, 330, 100
	for domain := range reports {
		addDomain(b, team, fmt.Sprintf("d%d.example", domain))
	}
	for day := range dmarcd.Day(days) {
		var deliveries []*dmarcd.Delivery
		for n := range reports {
			var rows []aggregate.Record
			for i := range records {
				row := storetest.Passed(fmt.Sprintf("d%d.example", n), 1)
				row.Source = fmt.Sprintf("192.0.%d.%d", i, n%250)
				rows = append(rows, row)
			}
			deliveries = append(deliveries, storetest.Delivery(storetest.Aggregate(fmt.Sprint(day, n), fmt.Sprintf("d%d.example", n), day, rows...)))
		}
		musttest.Get(team.Receive(b.Context(), deliveries))(b)
	}
	buildRollups(b, s)
	b.ReportAllocs()
	for b.Loop() {
		var block rollup.Block
		shares := 0
		err := team.Scan(b.Context(), "", dmarcd.Days{}, atOnce, func(part rollup.Part) error {
			err := block.Read(part)
			shares += len(block.Shares)
			return err
		})
		if err != nil || shares != days*reports {
			b.Fatalf("got %d shares, %v", shares, err)
		}
	}
}
