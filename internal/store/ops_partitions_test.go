package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// partitioned runs a test with an inbox on PostgreSQL at the current time, for which the migration
// created the first partition.
func partitioned(t *testing.T, test func(in *inbox)) {
	t.Helper()
	t.Parallel()
	if testing.Short() {
		return // SQLite has no partitions
	}
	in := newInbox(t, storetest.Postgres(t))
	in.clock.advance(time.Since(in.clock.Now()).Truncate(time.Second))
	test(in)
}

// partitions counts the partitions with an upper bound, and the records in each that has rows. A
// shard of a partition has its name and a number.
func (in *inbox) partitions() (n int, rows map[string]int) {
	in.Helper()
	each(in.T, in.sql(), `SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r' AND relname <> 'records_rest'`, func(scan func(...any) error) error {
		n++
		return scan(new(string))
	})
	rows = make(map[string]int)
	each(in.T, in.sql(), `SELECT substring(tableoid::regclass::text FROM 'records_(?:first|rest|[0-9]{8})'), count(*) FROM records GROUP BY 1`, func(scan func(...any) error) error {
		var name string
		var count int
		err := scan(&name, &count)
		rows[name] = count
		return err
	})
	return n, rows
}

func (in *inbox) partition() {
	in.Helper()
	musttest.Get(in.store.Partition(in.Context()))(in)
}

// daysAgo returns a report of some days before the clock of the inbox.
func (in *inbox) daysAgo(id string, days int) dmarcd.NewReport {
	return storetest.Aggregate(id, ours, dmarcd.DayOf(in.clock.Now())-dmarcd.Day(days), storetest.Passed(ours, 1), storetest.Failed(ours, 2))
}

func TestPartitionsAreMadeAhead(t *testing.T) {
	partitioned(t, func(in *inbox) {
		in.add(ours)
		for range 2 { // the second has nothing to do
			in.partition()
		}
		made, _ := in.partitions()
		if made < 4 || made > 5 {
			in.Errorf("got %d partitions, want the first and those of the next weeks", made)
		}
		// Four weeks without the job: everything has a partition.
		for week := range 4 {
			in.wantReceived("stored", in.daysAgo(fmt.Sprint(week), 1))
			in.clock.advance(ofDays(7))
		}
		if _, rows := in.partitions(); rows["records_rest"] != 0 || len(rows) < 3 {
			in.Errorf("got %v, want rows in the partitions of weeks", rows)
		}
		// A year without it: reports are stored nevertheless, and the job goes on.
		in.clock.advance(ofDays(365))
		in.wantReceived("stored", in.daysAgo("late", 1))
		if _, rows := in.partitions(); rows["records_rest"] != 2 {
			in.Errorf("got %v, want the rows without a partition in records_rest", rows)
		}
		in.clock.advance(ofDays(7))
		in.partition()
		in.wantReceived("stored", in.daysAgo("later", 1))
		if _, rows := in.partitions(); rows["records_rest"] != 2 {
			in.Errorf("got %v, want one of the new partitions used", rows)
		}
		in.sound()
	})
}

func TestExpiredRecordsGoWithTheirPartition(t *testing.T) {
	partitioned(t, func(in *inbox) {
		in.add(ours)
		retained := store.Retention{Records: ofDays(40)}
		var ids []dmarcd.ReportID
		for week := range 5 {
			in.partition()
			ids = append(ids, in.receive(in.daysAgo(fmt.Sprint(week), 0))[0].ID)
			in.clock.advance(ofDays(7))
		}
		before, rows := in.partitions()
		total := musttest.Get(in.team.DomainSummary(in.Context(), ours, dmarcd.Days{}))(in)

		in.clock.advance(ofDays(20)) // 55 days after the first
		in.expire(retained)
		records, _, err := in.team.Records(in.Context(), ids[0], store.RecordCursor{}, 10)
		in.must(err)
		if len(records) != 0 {
			in.Errorf("got %d expired records", len(records))
		}
		if _, left := in.partitions(); cmp.Diff(rows, left) != "" {
			in.Errorf("rows were removed one by one: got %v, want %v", left, rows)
		}
		in.partition()
		after, left := in.partitions()
		if sum(left) >= sum(rows) || sum(left) < 4 {
			in.Errorf("got %v of %v, want the oldest partitions gone", left, rows)
		}
		if _, first := left["records_first"]; first {
			in.Errorf("got %v and %d of %d partitions, want the first gone", left, after, before)
		}
		in.sound()
		got := musttest.Get(in.team.DomainSummary(in.Context(), ours, dmarcd.Days{}))(in)
		if got != total {
			in.Errorf("the sum became %+v from %+v", got, total)
		}
		records, _, err = in.team.Records(in.Context(), ids[4], store.RecordCursor{}, 10)
		in.must(err)
		if len(records) != 2 {
			in.Errorf("got %d records of the newest report, want 2", len(records))
		}
		in.wantReceived("duplicate", in.daysAgo("4", int(dmarcd.DayOf(in.clock.Now()))-int(dmarcd.DayOf(in.clock.Now().Add(-ofDays(27))))))
	})
}

func sum(rows map[string]int) (n int) {
	for _, count := range rows {
		n += count
	}
	return n
}

func TestPartitionsStayForTeamsThatRetainRecords(t *testing.T) {
	partitioned(t, func(in *inbox) {
		in.add(ours)
		other := *in
		other.team = newTeam(in.T, in.store, "for ever")
		in.must(other.team.SetRetention(in.Context(), store.Retention{}))
		other.add(ours)
		in.partition()
		in.wantReceived("stored", in.daysAgo("1", 0))
		other.wantReceived("stored", in.daysAgo("1", 0))
		in.clock.advance(ofDays(60))
		in.expire(store.Retention{Records: ofDays(40)})
		in.partition()
		if _, rows := in.partitions(); sum(rows) != 2 {
			in.Errorf("got %v, want the records of the team that keeps them, and no others", rows)
		}
		in.sound()
		// A deleted report does not keep a partition.
		reports := musttest.Get(other.team.Reports(in.Context(), store.ReportFilter{}, 0, 10))(in)
		in.must(other.team.DeleteReport(in.Context(), reports[0].ID))
		in.partition()
		if _, rows := in.partitions(); sum(rows) != 0 {
			in.Errorf("got %v, want none", rows)
		}
		in.purge()
	})
}

// BenchmarkExpireRecords expires 2,000 reports of 50 records: by dropping their partition, and row
// by row, as if another team had a longer retention.
func BenchmarkExpireRecords(b *testing.B) {
	for name, longer := range map[string]bool{"partition": false, "rows": true} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				clock := newClock()
				clock.advance(time.Since(clock.Now()))
				db := storetest.Postgres(b)
				s := db.Open(b, store.Options{Now: clock.Now})
				team := newTeam(b, s, "a")
				if longer {
					other := newTeam(b, s, "b")
					musttest.Do(b, other.SetRetention(b.Context(), store.Retention{}))
					one := storetest.Delivery(storetest.Aggregate("1", "example.com", dmarcd.DayOf(clock.Now()), benchRows(1)...))
					musttest.Get(other.Receive(b.Context(), []*dmarcd.Delivery{one}))(b)
				}
				addDomain(b, team, "example.com")
				const batches = 100
				for batch := range batches {
					deliveries := make([]*dmarcd.Delivery, benchBatch)
					for i := range deliveries {
						id := batch*benchBatch + i
						deliveries[i] = storetest.Delivery(storetest.Aggregate(fmt.Sprint(id), "example.com", dmarcd.DayOf(clock.Now()), benchRows(id)...))
					}
					musttest.Get(team.Receive(b.Context(), deliveries))(b)
				}
				full := recordBytes(b, db)
				clock.advance(ofDays(60))
				b.StartTimer()
				storetest.All(b, func(ctx context.Context) (bool, error) { return s.Expire(ctx, store.Retention{Records: ofDays(40)}) })
				expired := time.Now()
				musttest.Get(s.Partition(b.Context()))(b)
				b.StopTimer()
				b.ReportMetric(float64(time.Since(expired).Milliseconds()), "drop-ms")
				b.ReportMetric(full/(batches*benchBatch*benchRecords), "bytes/record")
				b.ReportMetric(recordBytes(b, db)/full, "bytes-left")
				b.StartTimer()
			}
		})
	}
}

// recordBytes is the size of all partitions with their indexes.
func recordBytes(b *testing.B, db storetest.DB) (bytes float64) {
	b.Helper()
	err := db.SQL(b).QueryRowContext(b.Context(), `SELECT SUM(pg_total_relation_size(relid)) FROM pg_partition_tree('records') WHERE isleaf`).Scan(&bytes)
	musttest.Do(b, err)
	return bytes
}
