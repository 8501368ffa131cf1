package service_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/senders"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// manyDomains returns a team whose domains have mail of a server that only the SPF record of each
// links to it, on some days, and of spoofers.
func manyDomains(tb testing.TB, db storetest.DB, count, days int) (*service.Team, *store.Team, *insight.Service) {
	tb.Helper()
	s := db.Open(tb, store.Options{})
	sources := insight.New(&senders.Atlas{}, senders.NewCatalogue(nil), nameless{}, nil)
	w := service.New(s, service.Options{Insight: sources, Now: time.Now})
	acme := storetest.Team(tb, s, "acme")
	team := s.Team(acme.ID)
	today := dmarcd.DayOf(time.Now())
	for i := range count {
		name := fmt.Sprintf("d%d.example", i)
		musttest.Get(team.AddDomain(tb.Context(), name, time.Now().Add(time.Hour)))(tb)
		checked := &facts.Facts{Domain: name, SPF: facts.SPF{Status: "ok", Tree: []facts.SPFTerm{
			{Term: fmt.Sprintf("ip4:192.0.2.%d", i%200)},
			{Term: "include:_spf.provider.example", Target: "_spf.provider.example", Terms: []facts.SPFTerm{{Term: "a", Addresses: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/28")}}}},
		}}}
		musttest.Get(team.SaveCheck(tb.Context(), name, facts.Check{At: time.Now(), Conclusive: true, Facts: checked}, dmarcd.Plan{Next: time.Now().Add(time.Hour)}))(tb)
	}
	for day := range dmarcd.Day(days) {
		var mail []*dmarcd.Delivery
		for i := range count {
			name := fmt.Sprintf("d%d.example", i)
			own, spoofed := storetest.Failed(name, 20), storetest.Failed(name, 10)
			own.Source, spoofed.Source = fmt.Sprintf("192.0.2.%d", i%200), fmt.Sprintf("203.0.113.%d", i%250)
			own.SPFResults = []aggregate.SPFResult{{Domain: "bounce.invalid", Scope: "mfrom", Result: "fail"}}
			mail = append(mail, storetest.Delivery(storetest.Aggregate(fmt.Sprint(day, i), name, today-10-day, own, spoofed)))
		}
		musttest.Get(team.Receive(tb.Context(), mail))(tb)
	}
	storetest.All(tb, s.BuildRollups)
	return w.Team(acme.ID, service.CommandLine()), team, sources
}

func listSenders(tb testing.TB, mail *insight.Mail, assess bool) insight.List {
	tb.Helper()
	defer mail.Close()
	return musttest.Get(mail.Sources(tb.Context(), insight.Query{Group: insight.GroupNetwork, Limit: 100, Trends: true, Assess: assess}))(tb)
}

// TestClassesOfManyDomains wants the classes of the senders of more domains than are read one by one.
func TestClassesOfManyDomains(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		team, _, _ := manyDomains(t, db, 45, 1)
		today := dmarcd.DayOf(time.Now())
		from := today - 30
		got := make(map[string]string)
		for _, row := range listSenders(t, musttest.Get(team.Mail(t.Context(), "", dmarcd.Days{From: &from, To: &today}))(t), true).Sources {
			got[row.Key] = fmt.Sprint(row.Counts.Total(), row.Assessment.Class)
		}
		if len(got) != 2 || got["-:yours"] != "900yours" || got["-:others"] != "450spoofing" {
			t.Errorf("got %v, want servers and spoofers", got)
		}
	})
}

// BenchmarkSendersOfManyDomains lists the senders of a team with 1,000 domains: without classes, with
// those of checks that are read first, and of those that are known.
func BenchmarkSendersOfManyDomains(b *testing.B) {
	team, stored, sources := manyDomains(b, storetest.SQLite(b), 1000, 5)
	today := dmarcd.DayOf(time.Now())
	from := today - 30
	days := dmarcd.Days{From: &from, To: &today}
	b.Run("without classes", func(b *testing.B) {
		for b.Loop() {
			listSenders(b, musttest.Get(sources.Read(b.Context(), stored, "", days))(b), false)
		}
	})
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			fresh := insight.New(&senders.Atlas{}, senders.NewCatalogue(nil), nameless{}, nil)
			m := musttest.Get(fresh.Read(b.Context(), stored, "", days))(b)
			musttest.Do(b, m.LoadDomains(b.Context()))
			listSenders(b, m, true)
		}
	})
	b.Run("later", func(b *testing.B) {
		for b.Loop() {
			listSenders(b, musttest.Get(team.Mail(b.Context(), "", days))(b), true)
		}
	})
	b.Run("domains only", func(b *testing.B) {
		for b.Loop() {
			m := musttest.Get(sources.Read(b.Context(), stored, "", days))(b)
			musttest.Do(b, m.LoadDomains(b.Context()))
			m.Close()
		}
	})
	b.Run("job", func(b *testing.B) {
		for b.Loop() {
			musttest.Do(b, sources.FindSenders(b.Context(), stored, days, func([]dmarcd.Sender) error { return nil }, func([]dmarcd.DomainDay) error { return nil }))
		}
	})
}
