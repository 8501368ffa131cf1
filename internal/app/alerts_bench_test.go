package app

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/senders"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

const (
	benchDomains = 100
	benchHistory = 40 // days
)

// eachEngine runs a benchmark on SQLite and PostgreSQL.
func eachEngine(b *testing.B, run func(b *testing.B, db storetest.DB)) {
	b.Helper()
	for _, db := range []func(testing.TB) storetest.DB{storetest.SQLite, storetest.Postgres} {
		db := db(b)
		b.Run(db.Engine, func(b *testing.B) { run(b, db) })
	}
}

// benchTeam returns a new team with domains.
func benchTeam(b *testing.B, s *store.Store, name string, domains int) (*store.Team, []string) {
	b.Helper()
	created := storetest.Team(b, s, name)
	names := make([]string, domains)
	for i := range names {
		names[i] = fmt.Sprintf("d%d.%s.example", i, name)
	}
	team := s.Team(created.ID)
	musttest.Get(team.AddDomains(b.Context(), names, time.Now().Add(time.Hour)))(b)
	return team, names
}

// BenchmarkDetection evaluates 100 domains, each with one incident, and writes the events with
// their alerts and deliveries. The ratios of both steps together, and of writing alone, are to
// inserting the same rows, one by one with prepared statements in one transaction, each in its
// fastest round.
func BenchmarkDetection(b *testing.B) {
	eachEngine(b, func(b *testing.B, db storetest.DB) {
		ctx := b.Context()
		var saving time.Duration // when it began
		s := db.Open(b, store.Options{Statement: func(query string) {
			if strings.HasPrefix(query, "UPDATE alert_scans SET after_id") {
				saving = spent(b, db)
			}
		}})
		bare := db.SQL(b)
		bare.SetMaxOpenConns(1)
		a := &App{store: s, service: service.New(s, service.Options{})}
		today := dmarcd.DayOf(time.Now())
		var detecting time.Duration
		var whole, writing, inserting []float64
		round := 0
		for b.Loop() {
			b.StopTimer()
			round++
			team, _ := benchTeam(b, s, fmt.Sprintf("t%d", round), benchDomains)
			hook := musttest.Get(team.AddWebhook(ctx, dmarcd.Webhook{URL: "https://hooks.example/", Format: dmarcd.FormatStandard}, func(dmarcd.Webhook) ([]byte, error) { return []byte("x"), nil }))(b)
			benchMail(b, s, team, today)
			b.StartTimer()
			began := spent(b, db)
			musttest.Get(a.service.DetectAlerts(ctx))(b)
			ended := spent(b, db)
			took := ended - began
			detecting += took
			b.StopTimer()
			if last, err := team.LastEvent(ctx); err != nil || last != benchDomains {
				b.Fatalf("got %d events, %v; want one of each domain", last, err)
			}
			began = spent(b, db)
			insertBare(b, bare, team, hook.ID)
			inserting = append(inserting, (spent(b, db) - began).Seconds())
			whole, writing = append(whole, took.Seconds()), append(writing, (ended-saving).Seconds())
			b.StartTimer()
		}
		b.ReportMetric(benchDomains*float64(round)/detecting.Seconds(), "events/s")
		b.ReportMetric(slices.Min(whole)/slices.Min(inserting), "ratio")
		b.ReportMetric(slices.Min(writing)/slices.Min(inserting), "ratio_writing")
	})
}

// benchMail stores the figures of the team's domains. On the last day the mail of a key fails.
func benchMail(b *testing.B, s *store.Store, team *store.Team, today dmarcd.Day) {
	b.Helper()
	domains := musttest.Get(team.Domains(b.Context(), "", benchDomains))(b)
	// Something has changed on each day: the figures of days are made anew.
	var deliveries []*dmarcd.Delivery
	for day := today - benchHistory; day < today; day++ {
		deliveries = append(deliveries, storetest.Delivery(storetest.Aggregate(fmt.Sprint(team.ID(), day), domains[0].Name, day, storetest.Passed(domains[0].Name, 1))))
	}
	musttest.Get(team.Receive(b.Context(), deliveries))(b)
	var days []dmarcd.DomainDay
	for _, d := range domains {
		for day := today - benchHistory; day < today; day++ {
			passes := int64(1000)
			if day == today-1 {
				passes = 0
			}
			key := []dmarcd.MailPart{{Key: "s1._domainkey." + d.Name, Messages: 1000, Passes: passes}}
			days = append(days, dmarcd.DomainDay{Domain: d.ID, MailDay: dmarcd.MailDay{
				Day: day, Messages: 1000, Passes: 1000, Selectors: key, Receivers: []dmarcd.MailPart{{Key: "one", Messages: 1000, Passes: 1000}},
			}})
		}
	}
	for more := true; more; {
		more = musttest.Get(s.UpdateSenders(b.Context(), func(_ context.Context, t *store.Team, _ dmarcd.Days, _ func([]dmarcd.Sender) error, saveDays func([]dmarcd.DomainDay) error) error {
			if t.ID() != team.ID() {
				return errors.New("another team is due")
			}
			return saveDays(days)
		}))(b)
	}
}

// insertBare inserts as many events, alerts and deliveries as the team has.
func insertBare(b *testing.B, db *sql.DB, team *store.Team, hook dmarcd.WebhookID) {
	b.Helper()
	ctx := b.Context()
	tx := musttest.Get(db.BeginTx(ctx, nil))(b)
	document := `{"v":1,"day":20000,"subject":"s1._domainkey.d1.example","messages":1000,"observed":0.1,"usual":0.9}`
	for _, of := range []struct {
		query string
		args  func(seq int64) []any
	}{
		{`INSERT INTO events (team_id, seq, id, domain_id, at, kind, document) VALUES ($1, $2, $3, NULL, 0, 'selector.failing', $4)`, func(seq int64) []any {
			return []any{team.ID(), seq, int64(team.ID())<<20 + seq, document}
		}},
		{`INSERT INTO alerts (team_id, seq, kind, domain_id, subject, first_day, last_day, level, state, reason, send_at)
			VALUES ($1, $2, 'selector.failing', $2, 's1._domainkey.d1.example', 20000, 20000, 'error', 'passed', 'It matches the rules.', 0)`, func(seq int64) []any { return []any{team.ID(), seq} }},
		{`INSERT INTO deliveries (team_id, id, webhook_id, seq, created_at, next_at, give_up_at, lease_until, attempts, test)
			VALUES ($1, $2, $3, $4, 0, 0, 0, 0, 0, FALSE)`, func(seq int64) []any { return []any{team.ID(), int64(team.ID())<<20 + seq, hook, seq} }},
	} {
		statement, err := tx.PrepareContext(ctx, of.query) //nolint:sqlclosecheck // the transaction closes it
		musttest.Do(b, err)
		for seq := int64(1_000_001); seq <= 1_000_000+benchDomains; seq++ {
			musttest.Get(statement.ExecContext(ctx, of.args(seq)...))(b)
		}
	}
	musttest.Do(b, tx.Commit())
}

// BenchmarkAlertingOfImports stores reports of 30 days and finds their senders, once as
// without alerts, once with the figures that alerts need and their detection. The
// metric is the median of the rounds, with its quartiles.
func BenchmarkAlertingOfImports(b *testing.B) {
	eachEngine(b, func(b *testing.B, db storetest.DB) {
		ctx := b.Context()
		s := db.Open(b, store.Options{})
		bare := db.SQL(b)
		a := &App{store: s, service: service.New(s, service.Options{}), insight: insight.New(&senders.Atlas{}, senders.NewCatalogue(nil), nameless{}, nil)}
		without := func(ctx context.Context, t *store.Team, days dmarcd.Days, save func([]dmarcd.Sender) error, _ func([]dmarcd.DomainDay) error) error {
			return a.insight.FindSenders(ctx, t, days, save, func([]dmarcd.DomainDay) error { return nil })
		}
		stored := func(name string, finish func() error) float64 {
			b.Helper()
			b.StopTimer()
			team, names := benchTeam(b, s, name, 20)
			batches := benchReports(names)
			b.StartTimer()
			began := processorTime(b, db.Engine, bare)
			receiveAll(b, team, batches)
			musttest.Do(b, finish())
			return (processorTime(b, db.Engine, bare) - began).Seconds()
		}
		var added []float64
		for b.Loop() {
			round := len(added)
			alerting := func() float64 {
				return stored(fmt.Sprintf("alerts%d", round), func() error {
					return errors.Join(untilDone(ctx, a.storeSenders), untilDone(ctx, a.service.DetectAlerts))
				})
			}
			plain := func() float64 {
				return stored(fmt.Sprintf("plain%d", round), func() error {
					return untilDone(ctx, func(ctx context.Context) (bool, error) { return s.UpdateSenders(ctx, without) })
				})
			}
			// They take turns in going first: a database grows.
			var with, without float64
			if round%2 == 0 {
				with, without = alerting(), plain()
			} else {
				without, with = plain(), alerting()
			}
			added = append(added, 100*(with/without-1))
		}
		slices.Sort(added)
		b.ReportMetric(added[len(added)/4], "lower_quartile_percent")
		b.ReportMetric(added[len(added)/2], "added_percent")
		b.ReportMetric(added[3*len(added)/4], "upper_quartile_percent")
	})
}

// spent returns a time that passes with the work for a database: that of the processor, which
// other programs do not change, where the database is in this process.
func spent(b *testing.B, db storetest.DB) time.Duration {
	b.Helper()
	if db.Engine != "sqlite" {
		return time.Duration(time.Now().UnixNano())
	}
	return processorTime(b, db.Engine, nil)
}

// processorTime returns the processor time of this process and, on PostgreSQL, of the server
// processes of the database.
func processorTime(b *testing.B, engine string, db *sql.DB) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	musttest.Do(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	used := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	if engine == "sqlite" {
		return used
	}
	rows, err := db.QueryContext(b.Context(), `SELECT pid FROM pg_stat_activity WHERE datname = current_database()`)
	musttest.Do(b, err)
	defer func() { musttest.Do(b, rows.Close()) }()
	for rows.Next() {
		var pid int
		musttest.Do(b, rows.Scan(&pid))
		ofServer := musttest.Get(daemon.ProcessorTime(pid))(b)
		used += ofServer
	}
	musttest.Do(b, rows.Err())
	return used
}

// untilDone repeats a step until there is nothing left to do.
func untilDone(ctx context.Context, step func(context.Context) (bool, error)) error {
	for {
		if more, err := step(ctx); err != nil || !more {
			return err
		}
	}
}

// benchReports returns reports of 50 records about each domain and day, 20 in each batch.
func benchReports(names []string) (batches [][]*dmarcd.Delivery) {
	today := dmarcd.DayOf(time.Now())
	for day := today - 30; day < today; day++ {
		var batch []*dmarcd.Delivery
		for _, name := range names {
			rows := make([]aggregate.Record, 50)
			for i := range rows {
				rows[i] = storetest.Passed(name, 10)
				rows[i].Source = fmt.Sprintf("192.0.2.%d", i)
			}
			batch = append(batch, storetest.Delivery(storetest.Aggregate(fmt.Sprint(name, day), name, day, rows...)))
		}
		batches = append(batches, batch)
	}
	return batches
}

func receiveAll(b *testing.B, team *store.Team, batches [][]*dmarcd.Delivery) {
	b.Helper()
	for _, batch := range batches {
		musttest.Get(team.Receive(b.Context(), batch))(b)
	}
}
