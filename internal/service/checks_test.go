package service_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestChecksPreserveTheMark checks a domain that neither takes nor sends mail itself: only a user marks it
// as parked, whatever the DNS and the reports show, and a check then proposes p=reject.
func TestChecksPreserveTheMark(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		team := s.Team(storetest.Team(t, s, "a").ID)
		musttest.Get(team.AddDomain(t.Context(), "example.com", time.Now().Add(time.Hour)))(t)
		now := time.Now().Add(-time.Hour) // entries of one second have no order
		checker := dnscheck.New(dnscheck.Options{
			Resolver: dnstest.New("example.com. MX 0 .\n" + `example.com. TXT "v=spf1 -all"` + "\n" + `_dmarc.example.com. TXT "v=DMARC1; p=none"`), Interval: time.Hour, Now: func() time.Time { return now },
		})
		for _, step := range []struct {
			name   string
			mark   *bool
			passes int64
			parked bool
		}{
			{name: "without a mark"},
			{name: "marked", mark: new(true), parked: true},
			{name: "with mail that passes", passes: 10, parked: true},
			{name: "without the mark again", mark: new(false)},
		} {
			now = now.Add(time.Minute)
			if step.mark != nil {
				musttest.Do(t, team.SetParked(t.Context(), "example.com", *step.mark))
			}
			if step.passes > 0 {
				report := storetest.Aggregate(time.Now().String(), "example.com", dmarcd.DayOf(time.Now())-1, storetest.Passed("news.example.com", step.passes))
				musttest.Get(team.Receive(t.Context(), []*dmarcd.Delivery{storetest.Delivery(report)}))(t)
			}
			musttest.Do(t, service.Checks{Checker: checker}.Full(t.Context(), team, "example.com", dnscheck.Requested))
			if domain := musttest.Get(team.Domain(t.Context(), "example.com"))(t); domain.Parked != step.parked {
				t.Errorf("%s: got parked %t, want %t", step.name, domain.Parked, step.parked)
			}
			check := musttest.Get(team.LatestCheck(t.Context(), "example.com"))(t)
			locks := slices.ContainsFunc(check.Check.Findings, func(f dmarcd.Finding) bool {
				return strings.HasPrefix(f.Record.Name, "_dmarc.") && strings.Contains(f.Record.Data, "p=reject")
			})
			if locks != step.parked {
				t.Errorf("%s: got %+v, want a record with p=reject: %t", step.name, check.Check.Findings, step.parked)
			}
		}
	})
}

// TestQueriesForAUser checks a domain on several occasions: a user who has just changed a record must
// not get the answer to an earlier query.
func TestQueriesForAUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	var mu sync.Mutex
	var forUser []bool
	resolver := resolverFunc(func(ctx context.Context, q dns.Question) dns.Answer {
		mu.Lock()
		defer mu.Unlock()
		forUser = append(forUser, dns.IsForUser(ctx))
		return dns.Answer{Question: q, Outcome: dns.Data, Records: []dns.Record{{Text: []string{"v=DMARC1; p=none"}}}}
	})
	options := w.options
	options.Checker = dnscheck.New(dnscheck.Options{Resolver: resolver, Interval: time.Hour, Now: time.Now})
	s := service.New(w.store, options)
	team := s.Team(w.team.ID, w.asOwner())
	for _, test := range []struct {
		occasion string
		check    func() error
		want     bool
	}{
		{"created", func() error { _, err := team.AddDomain(ctx, "new.example"); return err }, true},
		{"requested", func() error { _, _, err := team.Verify(ctx, "new.example"); return err }, true},
		{"scheduled", func() error { return s.CheckDue(ctx, dmarcd.DueDomain{Team: w.team.ID, Name: "new.example"}) }, false},
	} {
		forUser = nil
		if err := test.check(); err != nil || len(forUser) == 0 || slices.Contains(forUser, !test.want) {
			t.Errorf("%s: got %v, %v, want queries with %v", test.occasion, forUser, err, test.want)
		}
	}
}

// TestSelfTestStatesWhetherTheMessageIsAuthenticated stores a report with each result.
func TestSelfTestStatesWhetherTheMessageIsAuthenticated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	for _, test := range []struct {
		intake  dmarcd.Intake
		genuine dmarcd.Genuine
		want    string
		passed  bool
	}{
		{dmarcd.IntakeSMTP, dmarcd.GenuineYes, "The message is authenticated. Because.", true},
		{dmarcd.IntakeSMTP, dmarcd.GenuineNo, "The message is not authenticated, which is no problem: the daemon does not sign its self-test. Because.", true},
		{dmarcd.IntakeSMTP, dmarcd.GenuineUnknown, "It is unknown whether the message is authenticated. Because.", false},
		{dmarcd.IntakeIMAP, dmarcd.GenuineUnknown, "It is unknown whether the message is authenticated. Because.", true},
	} {
		team := w.with(w.asOwner(), func(o *service.Options) {
			o.ReportDomain = "reports.example"
			o.SelfTests = selfTests(func(_ context.Context, _, _, id string) ([]dmarcd.SelfTestStage, bool) {
				delivery := storetest.Delivery(storetest.Aggregate(id, ours, 20000))
				delivery.Intake = test.intake
				delivery.SetAuthentication(dmarcd.Authentication{Genuine: test.genuine, Reason: "Because."})
				musttest.Get(w.store.Team(w.team.ID).Receive(ctx, []*dmarcd.Delivery{delivery}))(t)
				return nil, true
			})
		})
		got := musttest.Get(team.SelfTest(ctx, ours))(t)
		if stage := got.Stages[0]; stage.Name != dmarcd.StageVerification || stage.Detail != test.want || stage.Passed != test.passed {
			t.Errorf("%s, %s: got %+v, want %q, passed: %t", test.intake, test.genuine, stage, test.want, test.passed)
		}
	}
}
