package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestLockOrder makes operations of a team wait for a transaction of the same team that locks rows
// in the order of domainLocks. While they wait, that transaction can lock all later rows: otherwise
// the two would deadlock. SQLite has one writer.
func TestLockOrder(t *testing.T) {
	const (
		domains = `SELECT id FROM domains WHERE team_id = $1 AND deleted_at = 0 ORDER BY id`
		reports = `SELECT id FROM reports WHERE team_id = $1 ORDER BY id`
		byDay   = `SELECT day FROM domain_days WHERE team_id = $1 ORDER BY domain_id, day`
		days    = `SELECT day FROM team_days WHERE team_id = $1 ORDER BY day`
	)
	names := []string{"a.example", "b.example", "c.example", "d.example", "e.example", "f.example", "g.example", "h.example"}
	expire := func(retained store.Retention) func(in *inbox, last string) error {
		return func(in *inbox, _ string) error { _, err := in.store.Expire(in.Context(), retained); return err }
	}
	for _, row := range []struct {
		name string
		make func(in *inbox) // nil adds the domains
		// order are the rows that the other transaction locks, the first before the operation.
		order   []string
		operate func(in *inbox, last string) error // last is the domain with the highest id
	}{
		{"a version is replaced by one of another domain", nil, []string{domains, reports, byDay, days}, func(in *inbox, last string) error {
			_, err := in.team.Receive(in.Context(), []*dmarcd.Delivery{storetest.Delivery(report("1", names[0], storetest.Failed(last, 3)))})
			return err
		}},
		{"a report is excluded", nil, []string{domains, reports, byDay, days}, func(in *inbox, _ string) error {
			listed, err := in.team.Reports(in.Context(), store.ReportFilter{}, 0, 10)
			if err == nil {
				_, err = in.team.SetReportCounted(in.Context(), listed[0].ID, false, decided("report.exclude"))
			}
			return err
		}},
		{"reports expire", nil, []string{domains, reports, byDay, days}, expire(store.Retention{Records: time.Hour, Counters: time.Hour})},
		{"records expire with their partition", nil, []string{reports, days}, expire(store.Retention{Records: time.Hour})},
		{"records of some teams expire", func(in *inbox) {
			in.add(names...)
			in.must(in.team.SetRetention(in.Context(), store.Retention{Records: ofDays(2)}))
		}, []string{reports, days}, expire(store.Retention{Records: ofDays(3)})},
		{"days expire", func(in *inbox) {
			in.add(names...)
			for day := 50; day > 0; day-- {
				in.damage(fmt.Sprintf(`INSERT INTO domain_days (team_id, domain_id, day, compliant, non_compliant, quarantined, rejected, dkim, spf, unverified)
					SELECT team_id, id, %d, 0, 0, 0, 0, 0, 0, 0 FROM domains WHERE team_id = %d AND name = 'a.example'`, day, in.team.ID()))
			}
		}, []string{byDay, days}, expire(store.Retention{Counters: ofDays(1)})},
		{
			"the sample is deleted", func(in *inbox) { in.must(in.team.AddSampleDomains(in.Context(), names)) },
			[]string{domains, reports, byDay, days},
			func(in *inbox, _ string) error { return in.team.DeleteSample(in.Context()) },
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			eachInbox(t, func(in *inbox) {
				if in.db.Engine == "sqlite" {
					return
				}
				if row.make == nil {
					in.add(names...)
				} else {
					row.make(in)
				}
				var records []aggregate.Record
				for _, name := range names {
					records = append(records, storetest.Passed(name, 5))
				}
				in.receive(report("1", names[0], records...))
				in.clock.advance(ofDays(4))
				var last string
				in.must(in.sql().QueryRowContext(in.Context(), `SELECT name FROM domains WHERE team_id = $1 ORDER BY id DESC LIMIT 1`, in.team.ID()).Scan(&last))
				other := musttest.Get(in.sql().BeginTx(in.Context(), nil))(in)
				defer func() { _ = other.Rollback() }()
				lock := func(query string) {
					in.Helper()
					if _, err := other.ExecContext(in.Context(), query, in.team.ID()); err != nil {
						in.Fatalf("%s: %v", query, err)
					}
				}
				lock(`SELECT team_id FROM team_locks WHERE team_id = $1 FOR SHARE`)
				lock(row.order[0] + ` LIMIT 1 FOR UPDATE`)
				ended := make(chan error, 1)
				go func() { ended <- row.operate(in, last) }()
				in.awaitLock(ended)
				for _, query := range row.order {
					lock(query + ` FOR UPDATE NOWAIT`)
				}
				in.must(other.Rollback())
				in.must(<-ended)
				in.sound()
			})
		})
	}
}

// awaitLock returns when a transaction waits for a lock, or an operation ended.
func (in *inbox) awaitLock(ended <-chan error) {
	in.Helper()
	waiting := `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
	if storetest.Distributed() {
		waiting = `SELECT count(*) FROM citus_lock_waits` // on the workers
	}
	for tick := time.NewTicker(time.Millisecond); len(ended) == 0 && in.number(waiting) == 0; {
		<-tick.C
	}
}
