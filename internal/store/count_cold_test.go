package store_test

import (
	order "cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sync/errgroup"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/cold"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/rollup"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// freezeAll is an age that all records have: negative, by more than a week.
const freezeAll = -14 * 24 * time.Hour

// freeze freezes the records of all reports, and rewrites what is due.
func (in *inbox) freeze() {
	in.Helper()
	storetest.All(in, func(ctx context.Context) (bool, error) { return in.store.Freeze(ctx, freezeAll) })
	in.sound()
}

// number returns the result of a query that counts.
func (in *inbox) number(query string) int {
	in.Helper()
	var n int
	in.must(in.sql().QueryRowContext(in.Context(), query).Scan(&n))
	return n
}

func (in *inbox) frozen() int {
	in.Helper()
	return in.number(`SELECT CAST(COALESCE(SUM(records), 0) AS BIGINT) FROM cold_blocks`)
}

// everything is all that a team can read of its records.
type everything struct {
	Reports []dmarcd.Report
	Records map[string][]store.Record // by the report's external id
	Scans   map[string][]string       // by domain
	Sent    []dmarcd.SentRecord
	Summary dmarcd.Summary
	Daily   []store.DailyCounts
}

func (in *inbox) everything() everything {
	in.Helper()
	ctx := in.Context()
	all := everything{Records: map[string][]store.Record{}, Scans: map[string][]string{}}
	var err error
	all.Reports = musttest.Get(in.team.ReportsFrom(ctx, store.ReportFilter{}, 0, time.Time{}, 1000))(in)
	for _, report := range all.Reports {
		// Pages of different length have the same records.
		for _, limit := range []int{7 + report.Records/20, 1000} {
			var records []store.Record
			for after := (store.RecordCursor{}); ; after = records[len(records)-1].Cursor {
				page, more, err := in.team.Records(ctx, report.ID, after, limit)
				in.must(err)
				if records = append(records, page...); !more {
					break
				}
			}
			key := fmt.Sprint(report.ExternalID, " ", report.State)
			if known, ok := all.Records[key]; ok {
				if diff := difference(known, records); diff != "" {
					in.Errorf("pages of %d:\n%s", limit, diff)
				}
			}
			all.Records[key] = records
		}
	}
	domains := musttest.Get(in.team.Domains(ctx, "", 100))(in)
	all.Scans[""] = sentLines(in, in.team, "", dmarcd.Days{})
	for _, domain := range domains {
		all.Scans[domain.Name] = sentLines(in, in.team, domain.Name, dmarcd.Days{})
	}
	positions, _, err := sentPositions(ctx, in.team)
	in.must(err)
	// The order of a scan is not defined.
	slices.SortFunc(positions, func(a, b dmarcd.SentPosition) int {
		return order.Or(order.Compare(a.Report, b.Report), order.Compare(a.Share, b.Share), order.Compare(a.N, b.N))
	})
	all.Sent = musttest.Get(in.team.SentRecords(ctx, positions))(in)
	if len(all.Sent) != len(positions) {
		in.Errorf("got %d records at %d positions", len(all.Sent), len(positions))
	}
	all.Summary = musttest.Get(in.team.Summary(ctx, dmarcd.Days{}))(in)
	all.Daily = musttest.Get(in.team.Daily(ctx, dmarcd.Days{}, 1000))(in)
	return all
}

// wantSame compares all reads with earlier ones.
func (in *inbox) wantSame(when string, before everything) {
	in.Helper()
	if diff := difference(before, in.everything()); diff != "" {
		in.Errorf("%s (-before +after):\n%s", when, diff)
	}
	in.sound()
}

// difference is cmp.Diff that can compare addresses. It takes far less time if nothing differs.
func difference(want, got any) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}))
}

// mixed returns a report with From domains of several of the team's domains, of none, and a record
// without messages.
func mixed(id string, day dmarcd.Day, rows int) dmarcd.NewReport {
	var records []aggregate.Record
	for i := range rows {
		for _, from := range []string{ours, "www." + ours, "other.example", "strange.example"} {
			records = append(records, storetest.Passed(from, int64(i)), storetest.Failed(from, 1000))
		}
	}
	return storetest.Aggregate(id, ours, day, records...)
}

// fill receives reports of some kinds: counted, excluded, replaced, held, empty and unclaimed.
func (in *inbox) fill() {
	in.Helper()
	in.add(ours, "other.example")
	in.receive(mixed("1", today, 3), mixed("2", today-1, 2), mixed("3", today-1, 1), storetest.Aggregate("4", ours, today), mixed("held", today, 1),
		storetest.Aggregate("5", "strange.example", today, storetest.Passed("strange.example", 9)))
	in.receive(mixed("1", today, 2)) // replaces
	held := storetest.Aggregate("6", ours, today, storetest.Passed(ours, 2_000_000_000))
	in.receive(held)
	reports := musttest.Get(in.team.Reports(in.Context(), store.ReportFilter{ExternalID: "3"}, 0, 1))(in)
	musttest.Get(in.team.SetReportCounted(in.Context(), reports[0].ID, false, decided("report.exclude")))(in)
}

func TestColdRecordsReadAsBefore(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.fill()
		before := in.everything()
		total := in.rows("records")
		in.freeze()
		if got := in.frozen(); got != total {
			in.Errorf("got %d records in blocks, want %d", got, total)
		}
		in.wantSame("without rollups", before)
		for range 2 {
			musttest.Get(in.store.BuildRollups(in.Context()))(in)
			in.wantSame("with rollups", before)
		}
		if in.db.Engine == "sqlite" {
			if got := in.rows("records"); got != 0 {
				in.Errorf("got %d rows that are in blocks", got)
			}
		}
		in.damage(`DELETE FROM records`)
		in.damage(`UPDATE team_days SET changes = changes + 1, broken = changes + 1`)
		in.wantSame("without rows", before)
		in.freeze() // has nothing to do
		in.wantSame("frozen again", before)

		// Another team has none of it.
		other := *in
		other.team = newTeam(in, in.store, "other")
		for _, report := range before.Reports {
			records, _, err := other.team.Records(in.Context(), report.ID, store.RecordCursor{}, 10)
			if len(records) != 0 || err != nil {
				in.Errorf("another team got %d records, %v", len(records), err)
			}
		}
		positions, _, err := sentPositions(in.Context(), in.team)
		in.must(err)
		sent, err := other.team.SentRecords(in.Context(), positions)
		if len(sent) != 0 || err != nil {
			in.Errorf("another team got %d sent records, %v", len(sent), err)
		}
	})
}

// TestColdRecordsChange changes frozen reports in all the ways in which others can change.
func TestColdRecordsChange(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.fill()
		in.freeze()
		find := func(id string, state dmarcd.ReportState) dmarcd.ReportID {
			in.Helper()
			reports := musttest.Get(in.team.Reports(in.Context(), store.ReportFilter{ExternalID: id, State: state}, 0, 1))(in)
			if len(reports) == 0 {
				in.Fatalf("no report %s", id)
			}
			return reports[0].ID
		}
		before := in.everything()
		set := func(id dmarcd.ReportID, counted bool) {
			in.Helper()
			musttest.Get(in.team.SetReportCounted(in.Context(), id, counted, decided("report.exclude")))(in)
			in.sound()
		}
		two := find("2", dmarcd.ReportCounted)
		set(two, false)
		set(two, true)
		in.wantSame("excluded and included", before)
		musttest.Get(in.store.BuildRollups(in.Context()))(in)
		in.wantSame("with rollups", before)

		// An unclaimed share is claimed by its new domain.
		in.add("strange.example")
		musttest.Get(in.store.BuildRollups(in.Context()))(in)
		if got := len(sentLines(in, in.team, "strange.example", dmarcd.Days{})); got == 0 {
			in.Error("got no record of the new domain")
		}

		// A new version replaces a frozen one.
		in.wantReceived("replaced", mixed("2", today-1, 4))
		in.freeze()

		// What is deleted is invisible at once, and removed from the blocks later.
		in.must(in.team.DeleteReport(in.Context(), find("1", dmarcd.ReportCounted), decided("report.delete")))
		in.delete("other.example")
		in.purge()
		after := in.everything()
		total := in.frozen()
		in.freeze()
		if got := in.frozen(); got != total {
			in.Errorf("got %d records in blocks at once, want %d", got, total)
		}
		in.clock.advance(time.Hour)
		in.freeze()
		in.wantSame("rewritten", after)
		want := 0
		for _, records := range after.Records {
			want += len(records)
		}
		if got := in.frozen(); got != want {
			in.Errorf("got %d records in blocks, want the %d that are left of %d", got, want, total)
		}

		// Expired records are invisible at once, and their blocks go after a week.
		retained := store.Retention{Records: ofDays(5), Counters: ofDays(100)}
		in.clock.advance(ofDays(10))
		in.expire(retained)
		for id, records := range in.everything().Records {
			if len(records) > 0 {
				in.Errorf("report %s has %d expired records", id, len(records))
			}
		}
		in.clock.advance(ofDays(7))
		in.freeze()
		if got := in.number(`SELECT COUNT(*) FROM cold_blocks`); got != 0 {
			in.Errorf("got %d blocks of expired records", got)
		}
		in.sound()
	})
}

// TestRecordsBecomeColdByAge freezes by age, in whole weeks, and drops the partition.
func TestRecordsBecomeColdByAge(t *testing.T) {
	partitioned(t, func(in *inbox) {
		in.add(ours)
		for week := range 3 {
			in.partition()
			in.receive(in.daysAgo(fmt.Sprint(week), 0))
			in.clock.advance(ofDays(14))
		}
		before := in.everything()
		for _, step := range []struct{ wait, want int }{{0, 2}, {7, 4}, {7, 4}, {7, 6}, {7, 6}} {
			in.clock.advance(ofDays(step.wait))
			musttest.Get(in.store.Freeze(in.Context(), ofDays(30)))(in)
			if got := in.frozen(); got < step.want-2 || got > step.want {
				in.Errorf("got %d records in blocks, want about %d", got, step.want)
			}
			in.partition()
			in.wantSame("after some weeks", before)
		}
		if got := in.frozen(); got != 6 {
			in.Errorf("got %d records in blocks, want all 6", got)
		}
		if _, rows := in.partitions(); len(rows) > 0 {
			in.Errorf("got rows in %v, want their partitions dropped", rows)
		}
		if _, err := in.store.Freeze(in.Context(), 0); err != nil {
			in.Error(err)
		}
	})
}

// TestScanAcrossFreeze drops the partition of records that a scan has not read yet when they
// are frozen.
func TestScanAcrossFreeze(t *testing.T) {
	partitioned(t, func(in *inbox) {
		in.add(ours)
		in.partition()
		in.receive(in.daysAgo("old", 0), storetest.Aggregate("busy", ours, dmarcd.DayOf(in.clock.Now())-9, storetest.Passed(ours, 5000)))
		musttest.Get(in.store.BuildRollups(in.Context()))(in)
		want := len(sentLines(in, in.team, "", dmarcd.Days{}))
		in.clock.advance(ofDays(60))
		got, frozen := 0, false
		in.must(in.team.Scan(in.Context(), "", dmarcd.Days{}, atOnce, func(part rollup.Part) error {
			if !frozen { // it visits rollups first
				frozen = true
				in.freeze()
				if _, err := in.store.Partition(in.Context()); err == nil {
					in.Error("got the partition dropped during a scan")
				}
			}
			var block rollup.Block
			err := block.Read(part)
			for _, share := range block.Shares {
				got += len(share.Records)
			}
			return err
		}))
		if got != want {
			in.Errorf("got %d records, want %d", got, want)
		}
		in.partition()
		if _, rows := in.partitions(); len(rows) > 0 {
			in.Errorf("got rows in %v, want their partitions dropped", rows)
		}
	})
}

func TestColdLargeReport(t *testing.T) {
	if testing.Short() {
		return
	}
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		var records []aggregate.Record
		for i := range 2*cold.MaxRecords + 500 {
			r := storetest.Passed([]string{ours, "a." + ours, "b." + ours}[i%3], int64(i))
			r.Source = fmt.Sprintf("10.0.%d.%d", i/256%256, i%256)
			records = append(records, r)
		}
		in.receive(storetest.Aggregate("small", ours, today, storetest.Passed(ours, 1)), storetest.Aggregate("large", ours, today, records...),
			storetest.Aggregate("last", ours, today, storetest.Passed(ours, 1)))
		reports := musttest.Get(in.team.Reports(in.Context(), store.ReportFilter{ExternalID: "large"}, 0, 1))(in)
		read := func() (all []store.Record) {
			in.Helper()
			for after := (store.RecordCursor{}); ; after = all[len(all)-1].Cursor {
				page, more, err := in.team.Records(in.Context(), reports[0].ID, after, 6000)
				in.must(err)
				if all = append(all, page...); !more {
					return all
				}
			}
		}
		before := read()
		scanned := sentLines(in, in.team, ours, dmarcd.Days{})
		in.freeze()
		if got := in.number(`SELECT COUNT(*) FROM cold_blocks`); got != 4 {
			in.Errorf("got %d blocks, want three, and one of the small reports", got)
		}
		if diff := difference(before, read()); diff != "" {
			in.Error(diff)
		}
		if diff := difference(scanned, sentLines(in, in.team, ours, dmarcd.Days{})); diff != "" {
			in.Error(diff)
		}
	})
}

// TestAbandonedColdBlocks removes blocks that a process wrote before it died.
func TestAbandonedColdBlocks(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.fill()
		in.freeze()
		before, blocks := in.everything(), in.number(`SELECT COUNT(*) FROM cold_blocks`)
		in.damage(fmt.Sprintf(`INSERT INTO cold_blocks SELECT team_id, 7, n, first_report, last_report + 1000, last_share, last_n, records, bytes, checksum, block, rows_left, %d
			FROM cold_blocks`, in.clock.Now().Add(time.Minute).Unix()))
		in.receive(mixed("new", today, 1)) // is frozen although the abandoned blocks claim to have it
		in.freeze()
		if got := in.number(`SELECT COUNT(*) FROM cold_blocks`); got != 2*blocks {
			in.Errorf("got %d blocks, want the %d twice, once with the new records", got, blocks)
		}
		in.clock.advance(time.Hour)
		in.freeze()
		if got := in.number(`SELECT COUNT(*) FROM cold_blocks`); got != blocks {
			in.Errorf("got %d blocks, want %d", got, blocks)
		}
		reports := musttest.Get(in.team.Reports(in.Context(), store.ReportFilter{ExternalID: "new"}, 0, 1))(in)
		in.must(in.team.DeleteReport(in.Context(), reports[0].ID, decided("report.delete")))
		in.wantSame("after the abandoned blocks", before)
	})
}

// TestReplicasFreezeTogether has several processes freeze and delete at once, as when a lease
// is lost.
func TestReplicasFreezeTogether(t *testing.T) {
	if testing.Short() {
		return
	}
	eachInbox(t, func(in *inbox) {
		in.fill()
		before := in.everything()
		for i := range 20 {
			in.receive(mixed(fmt.Sprint("extra", i), today, 2))
		}
		extra := musttest.Get(in.team.Reports(in.Context(), store.ReportFilter{}, 0, 20))(in)
		var all errgroup.Group
		for range 3 {
			replica := in.db.Open(in, store.Options{Now: in.clock.Now})
			all.Go(func() error {
				for more, attempts := true, 0; more; attempts++ {
					var err error
					more, err = replica.Freeze(in.Context(), freezeAll)
					if err != nil && (!errors.Is(err, dmarcd.ErrTemporary) || attempts > 100) {
						return err
					}
				}
				return nil
			})
		}
		all.Go(func() error {
			for _, report := range extra {
				if err := in.team.DeleteReport(in.Context(), report.ID, decided("report.delete")); err != nil {
					return err
				}
			}
			return nil
		})
		in.must(all.Wait())
		in.wantSame("frozen and deleted", before)
		in.purge()
		in.clock.advance(2 * time.Hour)
		in.freeze()
		in.wantSame("frozen at the end", before)
	})
}
