package service_test

import (
	"fmt"
	"net/netip"
	"strings"
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

// TestCausesComeFromTheChecksOfThePeriod explains mail that failed while the SPF record was
// broken, after it is valid again.
func TestCausesComeFromTheChecksOfThePeriod(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC()
	clock := now
	s := storetest.SQLite(t).Open(t, store.Options{Now: func() time.Time { return clock }})
	w := service.New(s, service.Options{Insight: insight.New(&senders.Atlas{}, senders.NewCatalogue(nil), nameless{}, nil), Now: time.Now})
	acme := storetest.Team(t, s, "acme")
	team := s.Team(acme.ID)
	musttest.Get(team.AddDomain(t.Context(), ours, now.Add(time.Hour)))(t)
	for _, check := range []struct {
		daysAgo int
		spf     facts.SPF
	}{{40, facts.SPF{Status: "ok"}}, {25, facts.SPF{Status: "permerror", Lookups: 12}}, {5, facts.SPF{Status: "ok"}}} {
		clock = now.AddDate(0, 0, -check.daysAgo)
		result := facts.Check{
			At: clock, Conclusive: true, Record: "v=DMARC1; p=none", RecordDomain: ours, Usable: true, Asked: true,
			Facts: &facts.Facts{Domain: ours, SPF: check.spf}, Grade: "A",
		}
		musttest.Get(team.SaveCheck(t.Context(), ours, result, dmarcd.Plan{Next: now.Add(time.Hour)}))(t)
	}
	clock = now
	var mail []*dmarcd.Delivery
	for day := range dmarcd.Day(6) {
		failed := storetest.Failed(ours, 50)
		failed.SPFResults = []aggregate.SPFResult{{Domain: ours, Scope: "mfrom", Result: "permerror"}}
		mail = append(mail, storetest.Delivery(storetest.Aggregate(fmt.Sprint(day), ours, dmarcd.DayOf(now)-20+day, failed)))
	}
	musttest.Get(team.Receive(t.Context(), mail))(t)
	simulated, err := w.Team(acme.ID, service.CommandLine()).Simulate(t.Context(), ours, dmarcd.Days{}, service.PolicyChange{})
	if err != nil || len(simulated.Senders) != 1 {
		t.Fatalf("got %+v, %v, want one sender", simulated.Senders, err)
	}
	want := fmt.Sprintf("since %s: the SPF record of example.com needs 12 lookups", now.AddDate(0, 0, -25).Format("2 Jan 2006"))
	if got := simulated.Senders[0]; !strings.Contains(got.Cause, want) || got.Fix != "" && !strings.Contains(got.Fix, "valid now") {
		t.Errorf("got the cause %q and the fix %q, want %q, and nothing to fix", got.Cause, got.Fix, want)
	}
}

// TestAdviceAboutTheWayOfReports wants reports to have a way here before it advises to wait for
// them.
func TestAdviceAboutTheWayOfReports(t *testing.T) {
	t.Parallel()
	const reportDomain, ownMailbox = "reports.example", "rua=mailto:someone@elsewhere.example"
	for _, test := range []struct {
		name         string
		reportDomain string
		mailbox      bool
		messages     int64
		want         string // the title of the action
	}{
		{"no report domain, no mailbox", "", false, 0, "Connect the mailbox that receives the reports"},
		{"no report domain, an uploaded report", "", false, 5, "Wait for more reports"},
		{"no report domain, a mailbox", "", true, 0, "Wait for more reports"},
		{"sent elsewhere", reportDomain, false, 0, "Add the reporting address to the record"},
		{"sent elsewhere, an uploaded report", reportDomain, false, 5, "Add the reporting address to the record"},
		{"sent elsewhere, a mailbox", reportDomain, true, 0, "Add the reporting address to the record"},
		{"sent elsewhere, reports from a mailbox", reportDomain, true, 5, "Wait for more reports"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := storetest.SQLite(t).Open(t, store.Options{})
			w := service.New(s, service.Options{
				Insight: insight.New(&senders.Atlas{}, senders.NewCatalogue(nil), nameless{}, nil), ReportDomain: test.reportDomain,
			})
			team := s.Team(storetest.Team(t, s, "acme").ID)
			musttest.Get(team.AddDomain(t.Context(), ours, time.Now().Add(time.Hour)))(t)
			check := facts.Check{At: time.Now(), Conclusive: true, Record: "v=DMARC1; p=none; " + ownMailbox, RecordDomain: ours, Usable: true, Policy: "none"}
			musttest.Get(team.SaveCheck(t.Context(), ours, check, dmarcd.Plan{Next: time.Now().Add(time.Hour)}))(t)
			if test.mailbox {
				musttest.Get(team.AddMailbox(t.Context(), sampleMailbox(), func(dmarcd.Mailbox) ([]byte, error) { return []byte("sealed"), nil }))(t)
			}
			if test.messages > 0 {
				report := storetest.Aggregate("1", ours, dmarcd.DayOf(time.Now())-1, storetest.Passed(ours, test.messages))
				musttest.Get(team.Receive(t.Context(), []*dmarcd.Delivery{storetest.Delivery(report)}))(t)
			}
			advice := musttest.Get(w.Team(team.ID(), service.CommandLine()).Advice(t.Context(), ours))(t)
			if next := advice.Next(); next == nil || next.Title != test.want {
				t.Errorf("got the action %+v, want %q", next, test.want)
			}
		})
	}
}

// manyDomains returns a team whose domains have mail of a server that only the SPF record of each
// links to it, on some days, and of spoofers.
func manyDomains(tb testing.TB, db storetest.DB, count, days int) (*service.Team, *store.Team, *insight.Service) {
	tb.Helper()
	s := db.Open(tb, store.Options{})
	recognition := insight.New(&senders.Atlas{}, senders.NewCatalogue(nil), nameless{}, nil)
	w := service.New(s, service.Options{Insight: recognition, Now: time.Now})
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
	return w.Team(acme.ID, service.CommandLine()), team, recognition
}

func listSenders(tb testing.TB, mail *insight.Mail, assess bool) insight.List {
	tb.Helper()
	defer mail.Close()
	return musttest.Get(mail.List(tb.Context(), insight.Query{Group: insight.GroupSender, Limit: 100, Trends: true, Assess: assess}))(tb)
}

// TestClassesOfManyDomains wants the classes of the senders of more domains than are read one by one.
func TestClassesOfManyDomains(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		team, _, _ := manyDomains(t, db, 45, 1)
		today := dmarcd.DayOf(time.Now())
		from := today - 30
		got := make(map[string]string)
		for _, row := range listSenders(t, musttest.Get(team.Mail(t.Context(), "", dmarcd.Days{From: &from, To: &today}))(t), true).Rows {
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
	team, stored, recognition := manyDomains(b, storetest.SQLite(b), 1000, 5)
	today := dmarcd.DayOf(time.Now())
	from := today - 30
	days := dmarcd.Days{From: &from, To: &today}
	b.Run("without classes", func(b *testing.B) {
		for b.Loop() {
			listSenders(b, musttest.Get(recognition.Read(b.Context(), stored, "", days))(b), false)
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
			m := musttest.Get(recognition.Read(b.Context(), stored, "", days))(b)
			musttest.Do(b, m.LoadDomains(b.Context()))
			m.Close()
		}
	})
	b.Run("job", func(b *testing.B) {
		for b.Loop() {
			musttest.Do(b, recognition.FindSenders(b.Context(), stored, days, func([]dmarcd.Sender) error { return nil }, func([]dmarcd.DomainDay) error { return nil }))
		}
	})
}
