package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/rollup"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// BenchmarkList reads the first domains of a team.
func BenchmarkList(b *testing.B) {
	for _, db := range []func(testing.TB) storetest.DB{storetest.SQLite, storetest.Postgres} {
		db := db(b)
		s := db.Open(b, store.Options{})
		team := s.Team(storetest.Team(b, s, "a").ID)
		var names []string
		for i := range 1000 {
			names = append(names, fmt.Sprintf("d%d.example", i))
		}
		musttest.Get(team.AddDomains(b.Context(), names, time.Time{}))(b)
		b.Run(db.Engine, func(b *testing.B) {
			for b.Loop() {
				if got, err := team.Domains(b.Context(), "", 10); err != nil || len(got) != 10 {
					b.Fatalf("got %d domains, %v", len(got), err)
				}
			}
		})
	}
}

func BenchmarkDomainSummary(b *testing.B) {
	for _, db := range []func(testing.TB) storetest.DB{storetest.SQLite, storetest.Postgres} {
		db := db(b)
		s := db.Open(b, store.Options{})
		created := storetest.Team(b, s, "a")
		team := s.Team(created.ID)
		var names []string
		for i := range 1000 {
			names = append(names, fmt.Sprintf("d%d.example", i))
		}
		musttest.Get(team.AddDomains(b.Context(), names, time.Time{}))(b)
		var counts []dmarcd.DayCount
		for day := range 90 {
			counts = append(counts, dmarcd.DayCount{Day: dmarcd.Day(day), Summary: dmarcd.Summary{Compliant: 1}})
		}
		storetest.Count(b, team, names[500], counts...)
		b.Run(db.Engine, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := team.DomainSummary(b.Context(), names[500], dmarcd.Days{}); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// monthReports make up a month of mail of 20 domains with 12 senders each; one message in
// twelve is spoofed or forwarded.
func monthReports(reports int) func(n int, day dmarcd.Day) dmarcd.NewReport {
	random := rand.New(rand.NewPCG(1, 2))
	address := func() string {
		return fmt.Sprintf("%d.%d.%d.%d", 1+random.IntN(220), random.IntN(256), random.IntN(256), random.IntN(256))
	}
	const domains, senders = 20, 12
	type sender struct {
		addresses []string
		record    aggregate.Record
	}
	var all [domains][senders]sender
	for d := range all {
		for s := range all[d] {
			name, service := fmt.Sprintf("domain%d.example", d), fmt.Sprintf("mail.service%d.example", random.IntN(60))
			all[d][s].record = aggregate.Record{
				HeaderFrom: name, EnvelopeFrom: service, Disposition: aggregate.PolicyNone, DKIM: aggregate.ResultPass, SPF: aggregate.ResultFail,
				DKIMResults: []aggregate.DKIMResult{
					{Domain: name, Selector: fmt.Sprintf("s%d%x", s, random.IntN(1<<20)), Result: aggregate.ResultPass},
					{Domain: service, Selector: fmt.Sprintf("k%x", random.IntN(1<<24)), Result: aggregate.ResultPass},
				},
				SPFResults: []aggregate.SPFResult{{Domain: service, Scope: "mfrom", Result: aggregate.ResultPass}},
			}
			for range 1 + random.IntN(20) {
				all[d][s].addresses = append(all[d][s].addresses, address())
			}
		}
	}
	return func(n int, last dmarcd.Day) dmarcd.NewReport {
		d := random.IntN(domains)
		rows := make([]aggregate.Record, benchRecords)
		for i := range rows {
			s := &all[d][random.IntN(senders)]
			r := s.record
			r.Source, r.Count = s.addresses[random.IntN(len(s.addresses))], 1+int64(random.ExpFloat64()*20)
			if random.IntN(12) == 0 {
				r.Source, r.DKIM, r.DKIMResults, r.Disposition = address(), aggregate.ResultFail, nil, aggregate.PolicyReject
				r.EnvelopeFrom = fmt.Sprintf("host%d.isp%d.example", random.IntN(1000), random.IntN(50))
				r.SPFResults = []aggregate.SPFResult{{Domain: r.EnvelopeFrom, Scope: "mfrom", Result: aggregate.ResultNone}}
			}
			rows[i] = r
		}
		return storetest.Aggregate(fmt.Sprint(n), fmt.Sprintf("domain%d.example", d), last-dmarcd.Day(n*30/reports), rows...)
	}
}

// BenchmarkColdRecords reads a month of records as rows and by column: all of a team and of one
// domain, with and without day rollups, and report by report, as an export does.
func BenchmarkColdRecords(b *testing.B) {
	const reports = 3000
	clock := newClock()
	clock.advance(time.Since(clock.Now()))
	db := storetest.Postgres(b)
	s := db.Open(b, store.Options{Now: clock.Now})
	team := newTeam(b, s, "a")
	for d := range 20 {
		addDomain(b, team, fmt.Sprintf("domain%d.example", d))
	}
	made := monthReports(reports)
	for n := 0; n < reports; {
		var deliveries []*dmarcd.Delivery
		for range benchBatch {
			deliveries = append(deliveries, storetest.Delivery(made(n, dmarcd.DayOf(clock.Now()))))
			n++
		}
		musttest.Get(team.Receive(b.Context(), deliveries))(b)
	}
	scan := func(name string) {
		var block rollup.Block
		records := 0
		musttest.Do(b, team.Scan(b.Context(), name, dmarcd.Days{}, atOnce, func(part rollup.Part) error {
			err := block.Read(part)
			for i := range block.Shares {
				records += len(block.Shares[i].Records)
			}
			return err
		}))
		if records == 0 || name == "" && records != reports*benchRecords {
			b.Fatalf("got %d records", records)
		}
	}
	export := func() {
		all := musttest.Get(team.ReportsFrom(b.Context(), store.ReportFilter{}, 0, time.Time{}, reports))(b)
		for _, report := range all {
			records, _, err := team.Records(b.Context(), report.ID, store.RecordCursor{}, 1000)
			if err != nil || len(records) != benchRecords {
				b.Fatalf("got %d records, %v", len(records), err)
			}
		}
	}
	measure := func(form string) {
		for _, read := range []struct {
			name string
			read func()
		}{{"team", func() { scan("") }}, {"domain", func() { scan("domain7.example") }}, {"export", export}} {
			b.Run(form+"/"+read.name, func(b *testing.B) {
				for b.Loop() {
					read.read()
				}
			})
		}
	}
	size := func(table string) float64 {
		var bytes float64
		musttest.Do(b, db.SQL(b).QueryRowContext(b.Context(), `SELECT pg_total_relation_size('`+table+`')`).Scan(&bytes))
		return bytes / (reports * benchRecords)
	}
	build := func() {
		storetest.All(b, s.BuildRollups)
	}
	measure("rows without rollups")
	build()
	measure("rows with rollups")
	rows := recordBytes(b, db) / (reports * benchRecords)
	clock.advance(ofDays(60))
	began := time.Now()
	storetest.All(b, func(ctx context.Context) (bool, error) { return s.Freeze(ctx, ofDays(30)) })
	took := time.Since(began)
	b.Run("freeze", func(b *testing.B) {
		for b.Loop() { // it was done once
			b.ReportMetric(reports*benchRecords/took.Seconds(), "records/s")
			b.ReportMetric(rows, "row-bytes/record")
			b.ReportMetric(size("cold_blocks"), "cold-bytes/record")
		}
	})
	musttest.Get(s.Partition(b.Context()))(b)
	if left := recordBytes(b, db); left > 1<<20 {
		b.Fatalf("%f bytes of rows are left", left)
	}
	measure("cold with rollups")
	musttest.Get(db.SQL(b).ExecContext(b.Context(), `UPDATE team_days SET in_rollup = -1`))(b)
	measure("cold without rollups")
}

// BenchmarkColdSmallTeams freezes the records of teams with 100 records a week for half a year,
// week by week.
func BenchmarkColdSmallTeams(b *testing.B) {
	const teams, weeks, reports = 40, 26, 2
	clock := newClock()
	db := storetest.Postgres(b)
	s := db.Open(b, store.Options{Now: clock.Now})
	var all []*store.Team
	made := make([]func(n int, day dmarcd.Day) dmarcd.NewReport, teams)
	for i := range teams {
		team := newTeam(b, s, fmt.Sprint("team", i))
		for d := range 20 {
			addDomain(b, team, fmt.Sprintf("domain%d.example", d))
		}
		all, made[i] = append(all, team), monthReports(30)
	}
	var freezing time.Duration
	for week := range weeks {
		for i, team := range all {
			for n := range reports {
				musttest.Get(team.Receive(b.Context(), []*dmarcd.Delivery{storetest.Delivery(made[i](week*reports+n, dmarcd.DayOf(clock.Now())))}))(b)
			}
		}
		clock.advance(ofDays(7))
		began := time.Now()
		storetest.All(b, func(ctx context.Context) (bool, error) { return s.Freeze(ctx, freezeAll) })
		freezing += time.Since(began)
		_, err := db.SQL(b).ExecContext(b.Context(), `VACUUM cold_blocks`) // as PostgreSQL does by itself within a week
		musttest.Do(b, err)
	}
	var blocks, bytes, total float64
	musttest.Do(b, db.SQL(b).QueryRowContext(b.Context(), `SELECT COUNT(*), SUM(bytes), pg_total_relation_size('cold_blocks') FROM cold_blocks`).Scan(&blocks, &bytes, &total))
	for b.Loop() { // it was done once
		const records = teams * weeks * reports * benchRecords
		b.ReportMetric(blocks/teams, "blocks/team")
		b.ReportMetric(bytes/records, "block-bytes/record")
		b.ReportMetric(total/records, "cold-bytes/record")
		b.ReportMetric(float64(freezing.Milliseconds())/teams/weeks, "ms/week")
	}
}
