package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
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
