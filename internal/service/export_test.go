package service_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/fair"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// export returns the positions of all exported records, with the sum of their counts.
func (w *world) export(t *service.Team, filter service.RecordFilter, after service.RecordPosition) (positions []service.RecordPosition, sum int64) {
	w.Helper()
	export := musttest.Get(t.ExportRecords(ctx, filter, after))(w)
	for {
		n := musttest.Get(export.Next(ctx, func(batch []service.ReportRecord) error {
			for _, r := range batch {
				positions = append(positions, r.Position())
				sum += r.Count
			}
			return nil
		}))(w)
		if n == 0 {
			return positions, sum
		}
	}
}

func TestExportOfRecords(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db) // it has a report with 7 messages
		const second = "second.example"
		stored, day := w.store.Team(w.team.ID), dmarcd.DayOf(time.Now())-1
		musttest.Get(stored.AddDomain(ctx, second, time.Now().Add(time.Hour)))(t)
		// More reports and more records in one report than a batch has.
		var long []aggregate.Record
		for range 1100 {
			long = append(long, storetest.Passed(ours, 1), storetest.Failed(second, 1))
		}
		deliveries := []*dmarcd.Delivery{storetest.Delivery(storetest.Aggregate("long", ours, day, long...))}
		for i := range 120 {
			reports := []dmarcd.NewReport{storetest.Aggregate(fmt.Sprint("short", i), "unknown.example", day-1, storetest.Passed(ours, 10), storetest.Passed("unknown.example", 5))}
			deliveries = append(deliveries, storetest.Delivery(reports...))
		}
		for part := range slices.Chunk(deliveries, 50) {
			musttest.Get(stored.Receive(ctx, part))(t)
		}
		held := storetest.Aggregate("held", ours, day, storetest.Passed(ours, 1000))
		held.HeldReason = "implausible"
		musttest.Get(stored.Receive(ctx, []*dmarcd.Delivery{storetest.Delivery(held)}))(t)

		team := w.service.Team(w.team.ID, service.CommandLine())
		days := dmarcd.Days{From: &day, To: &day}
		for _, tt := range []struct {
			name    string
			filter  service.RecordFilter
			records int
			sum     int64
		}{
			{"all that counts", service.RecordFilter{}, 1 + 2200 + 120, 7 + 2200 + 1200},
			{"a domain", service.RecordFilter{Domain: second}, 1100, 1100},
			{"a day", service.RecordFilter{Days: days}, 1 + 2200, 7 + 2200},
			{"a domain and a day", service.RecordFilter{Domain: ours, Days: days}, 1 + 1100, 7 + 1100},
			{"also what counts nowhere", service.RecordFilter{All: true}, 1 + 2200 + 240 + 1, 7 + 2200 + 1800 + 1000},
		} {
			positions, sum := w.export(team, tt.filter, service.RecordPosition{})
			if len(positions) != tt.records || sum != tt.sum {
				t.Errorf("%s: got %d records with %d messages, want %d and %d", tt.name, len(positions), sum, tt.records, tt.sum)
			}
			// The counters agree.
			if !tt.filter.All {
				counted, err := team.Summary(ctx, tt.filter.Days)
				if tt.filter.Domain != "" {
					counted, err = team.DomainSummary(ctx, tt.filter.Domain, tt.filter.Days)
				}
				w.must(err)
				if counted.Total() != sum {
					t.Errorf("%s: got %d messages, the summary has %d", tt.name, sum, counted.Total())
				}
			}
			// An export can be resumed anywhere.
			for _, at := range []int{0, len(positions) - 2, len(positions) - 1} {
				rest, _ := w.export(team, tt.filter, positions[at])
				if diff := cmp.Diff(positions[at+1:], append([]service.RecordPosition{}, rest...)); diff != "" {
					t.Errorf("%s: resumed after record %d (-want +got):\n%s", tt.name, at, diff)
				}
			}
		}
		if _, err := team.ExportRecords(ctx, service.RecordFilter{Domain: "other.example"}, service.RecordPosition{}); !errors.Is(err, dmarcd.ErrNotFound) {
			t.Errorf("a domain of another team: got %v, want ErrNotFound", err)
		}
	})
}

// TestSettledExports leaves out what was received in the last seconds, and stops with the
// process.
func TestSettledExports(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	report := musttest.Get(w.store.Team(w.team.ID).Report(ctx, w.report))(t)
	stop := make(chan struct{})
	for _, test := range []struct {
		settled bool
		after   time.Duration
		want    int
	}{{false, 0, 1}, {true, 9 * time.Second, 0}, {true, 11 * time.Second, 1}} {
		team := w.with(w.asOwner(), func(o *service.Options) {
			o.Now, o.Stopping = func() time.Time { return report.ReceivedAt.Add(test.after) }, stop
		})
		positions, _ := w.export(team, service.RecordFilter{Settled: test.settled}, service.RecordPosition{})
		if len(positions) != test.want {
			t.Errorf("after %s: got %d records, want %d", test.after, len(positions), test.want)
		}
	}
	team := w.with(w.asOwner(), func(o *service.Options) { o.Stopping = stop })
	export := musttest.Get(team.ExportRecords(ctx, service.RecordFilter{}, service.RecordPosition{}))(t)
	close(stop)
	if _, err := export.Next(ctx, nil); !errors.Is(err, dmarcd.ErrTemporary) {
		t.Errorf("got %v, want %v", err, dmarcd.ErrTemporary)
	}
}

// TestExportsEncodeInTheirTurn checks that a batch is used in the turn in which it was read.
func TestExportsEncodeInTheirTurn(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		other := w.store.Team(storetest.Team(t, w.store, "other").ID)
		export := musttest.Get(w.with(w.asOwner(), func(*service.Options) {}).ExportRecords(ctx, service.RecordFilter{}, service.RecordPosition{}))(t)
		n := musttest.Get(export.Next(ctx, func([]service.ReportRecord) error {
			waiting, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			for range fair.HalfCores() {
				defer other.ReadTurn(waiting)()
			}
			if waiting.Err() == nil {
				t.Error("another team got all turns meanwhile")
			}
			return nil
		}))(t)
		if n == 0 {
			t.Error("got no records")
		}
	})
}
