package service_test

import (
	"fmt"
	"strings"
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
		spf     dmarcd.SPFFacts
	}{{40, dmarcd.SPFFacts{Status: "ok"}}, {25, dmarcd.SPFFacts{Status: "permerror", Lookups: 12}}, {5, dmarcd.SPFFacts{Status: "ok"}}} {
		clock = now.AddDate(0, 0, -check.daysAgo)
		result := dmarcd.Check{
			At: clock, Conclusive: true, Record: "v=DMARC1; p=none", RecordDomain: ours, Usable: true, Asked: true,
			Facts: &dmarcd.Facts{Domain: ours, SPF: check.spf}, Grade: "A",
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
	want := fmt.Sprintf("since %s: the SPF record of example.com needs 12 lookups", now.AddDate(0, 0, -25).Format(time.DateOnly))
	if got := simulated.Senders[0]; !strings.Contains(got.Cause, want) || got.Fix != "" && !strings.Contains(got.Fix, "valid now") {
		t.Errorf("got the cause %q and the fix %q, want %q, and nothing to fix", got.Cause, got.Fix, want)
	}
}
