package insight_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// BenchmarkMillion lists the senders of a million records of 30 days and 25,600 addresses,
// read from a database each time. It reports the processor time of this process, too: it
// does not depend on what else the machine does.
func BenchmarkMillion(b *testing.B) {
	for _, engine := range []struct {
		name string
		open func(testing.TB) storetest.DB
	}{{"sqlite", storetest.SQLite}, {"postgres", storetest.Postgres}} {
		b.Run(engine.name, func(b *testing.B) {
			db := engine.open(b)
			team := millionTeam(b, db)
			service := newService(b)
			var bytes, records float64
			musttest.Do(b, db.SQL(b).QueryRowContext(b.Context(), `SELECT SUM(octet_length(block)), SUM(records) FROM day_rollups`).Scan(&bytes, &records))
			b.Run("find senders", func(b *testing.B) {
				began := processorTime(b)
				for b.Loop() {
					musttest.Do(b, service.FindSenders(b.Context(), team, dmarcd.Days{}, func([]dmarcd.Sender) error { return nil }, func([]dmarcd.DomainDay) error { return nil }))
				}
				b.ReportMetric(float64((processorTime(b)-began).Milliseconds())/float64(b.N), "cpu-ms/op")
			})
			b.Run("advise all domains", func(b *testing.B) {
				grown := peakHeap(func() { adviseAll(b, service, team) })
				began := processorTime(b)
				for b.Loop() {
					adviseAll(b, service, team)
				}
				b.ReportMetric(float64((processorTime(b)-began).Milliseconds())/float64(b.N), "cpu-ms/op")
				b.ReportMetric(float64(grown>>20), "MiB-peak")
			})
			for _, group := range insight.Groups() {
				b.Run(string(group), func(b *testing.B) {
					grown := peakHeap(func() { listRows(b, service, team, group) })
					began := processorTime(b)
					for b.Loop() {
						listRows(b, service, team, group)
					}
					b.ReportMetric(float64((processorTime(b)-began).Milliseconds())/float64(b.N), "cpu-ms/op")
					b.ReportMetric(float64(grown>>20), "MiB-peak")
					b.ReportMetric(bytes/records, "B/record")
				})
			}
		})
	}
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	musttest.Do(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func listRows(b *testing.B, service *insight.Service, team *store.Team, group insight.Group) {
	b.Helper()
	m := musttest.Get(service.Read(b.Context(), team, "", dmarcd.Days{}))(b)
	defer m.Close()
	list, err := m.List(b.Context(), insight.Query{Group: group, Limit: 100})
	if err != nil || list.Counts.Total() != 30*330*100*5 {
		b.Fatalf("got %d rows with %d messages, %v", len(list.Rows), list.Counts.Total(), err)
	}
}

// adviseAll reads the advice for all domains of a team.
func adviseAll(b *testing.B, service *insight.Service, team *store.Team) {
	b.Helper()
	domains := musttest.Get(team.Domains(b.Context(), "", 1000))(b)
	situations := make([]insight.Situation, len(domains))
	for i, d := range domains {
		const record = "v=DMARC1; p=none"
		situations[i] = insight.Situation{
			Domain: insight.Domain{ID: d.ID, Name: d.Name}, Published: insight.Published{Record: record, Own: true, Base: record, Addressed: true, ReportsHere: true},
		}
	}
	m := musttest.Get(service.Read(b.Context(), team, "", dmarcd.Days{}))(b)
	defer m.Close()
	all, err := m.Advise(b.Context(), situations...)
	if err != nil || len(all) != len(domains) || all[0].Next() == nil {
		b.Fatalf("got %d, %v, want advice for %d domains", len(all), err, len(domains))
	}
}

// millionTeam stores a million records in rollups.
func millionTeam(b *testing.B, db storetest.DB) *store.Team {
	b.Helper()
	s := db.Open(b, store.Options{})
	created := storetest.Team(b, s, "a")
	team := s.Team(created.ID)
	const days, reports, records = 30, 330, 100
	for domain := range reports {
		musttest.Get(team.AddDomain(b.Context(), fmt.Sprintf("d%d.example", domain), time.Unix(0, 0)))(b)
	}
	for day := range dmarcd.Day(days) {
		var deliveries []*dmarcd.Delivery
		for n := range reports {
			domain := fmt.Sprintf("d%d.example", n)
			var rows []aggregate.Record
			for i := range records {
				row := storetest.Passed(domain, int64(1+2*(i%5)))
				at := (n*records + i + int(day)*31) % 25_600
				row.Source = fmt.Sprintf("192.0.%d.%d", at>>8, at&255)
				row.DKIMResults = []aggregate.DKIMResult{{Domain: domain, Selector: fmt.Sprint("s", i%4), Result: aggregate.ResultPass}}
				rows = append(rows, row)
			}
			deliveries = append(deliveries, storetest.Delivery(storetest.Aggregate(fmt.Sprint(day, n), domain, day+18000, rows...)))
		}
		musttest.Get(team.Receive(b.Context(), deliveries))(b)
	}
	storetest.All(b, s.BuildRollups)
	return team
}
