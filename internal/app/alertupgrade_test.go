package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/alert"
	"github.com/dmarcd/dmarcd/internal/alert/alerttest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// undividedSenders finds senders as versions before migration 18 did: a network or service was one.
func (a *App) undividedSenders(ctx context.Context, t *store.Team, days dmarcd.Days, save func([]dmarcd.Sender) error, saveDays func([]dmarcd.DomainDay) error) error {
	return a.sources.FindSenders(ctx, t, days, func(found []dmarcd.Sender) error {
		var whole []dmarcd.Sender
		for _, s := range found {
			s.Key = dmarcd.SenderBase(s.Key)
			at := slices.IndexFunc(whole, func(w dmarcd.Sender) bool { return w.Domain == s.Domain && w.Key == s.Key })
			if at < 0 {
				whole = append(whole, s)
				continue
			}
			whole[at].SeenDays = whole[at].And(s.First).And(s.Last)
		}
		return save(whole)
	}, func(found []dmarcd.DomainDay) error {
		for i := range found {
			var whole []dmarcd.MailPart
			for _, s := range found[i].Senders {
				s.Key, s.Class = dmarcd.SenderBase(s.Key), ""
				s.Name, _, _ = strings.Cut(s.Name, ",")
				at := slices.IndexFunc(whole, func(w dmarcd.MailPart) bool { return w.Key == s.Key })
				if at < 0 {
					whole = append(whole, s)
					continue
				}
				whole[at].Messages += s.Messages
				whole[at].Passes += s.Passes
			}
			found[i].Senders = whole
		}
		return saveDays(found)
	})
}

// TestUpgradeOfSenderKeys upgrades an installation with history: the parts of its networks and services
// are no new senders, and none of them fails.
func TestUpgradeOfSenderKeys(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	const upgrade = 45
	plan := alerttest.Plan{Begin: 20_000, Days: 55, WarmUp: 1000, Apart: 12, Receivers: 1}
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, now := t.Context(), time.Unix(int64(plan.Begin)*24*60*60, 0).Add(6*time.Hour)
		clock := func() time.Time { return now }
		a := &App{sources: simulatedSources(), store: db.Open(t, store.Options{Now: clock})}
		created := storetest.Team(t, a.store, "acme")
		team := a.store.Team(created.ID)
		var simulated []*alerttest.Simulation
		for i := range 3 {
			simulated = append(simulated, alerttest.New(uint64(i), fmt.Sprintf("d%d.example", i), plan))
			musttest.Get(team.AddDomain(ctx, simulated[i].Domain, now))(t)
		}
		scanner := &alert.Scanner{Source: alertSource{a.store}, Now: clock}
		find := a.undividedSenders
		for day := range dmarcd.Day(plan.Days) {
			if day == upgrade {
				migration := musttest.Get(os.ReadFile(filepath.Join("..", "store", "migrations", db.Engine, "00018_senderkeys.sql")))(t)
				musttest.Get(db.SQL(t).ExecContext(ctx, string(migration)))(t)
				find = func(ctx context.Context, t *store.Team, days dmarcd.Days, save func([]dmarcd.Sender) error, saveDays func([]dmarcd.DomainDay) error) error {
					return a.sources.FindSenders(ctx, t, days, save, saveDays)
				}
			}
			for _, s := range simulated {
				for _, arrival := range s.Day(plan.Begin + day - 1) {
					server := dmarcd.MailPart{Key: "AS64600", Messages: 200, Passes: 200} // the owner's, in a network
					arrival.Mail.Senders = append(arrival.Mail.Senders, server)
					musttest.Get(team.Receive(ctx, delivered(s, arrival)))(t)
				}
			}
			for more := true; more; { // alerts are detected meanwhile, too
				var err error
				if more, err = a.store.UpdateSenders(ctx, find); err != nil {
					t.Fatal(err)
				}
				storetest.All(t, scanner.Step)
			}
			now = now.Add(24 * time.Hour)
		}
		for _, e := range musttest.Get(team.EventsSince(ctx, store.EventFilter{}, 0, 100))(t) {
			if strings.HasPrefix(string(e.Kind), "sender.") {
				t.Errorf("on day %d: %s", e.Day-plan.Begin, e.Summary())
			}
		}
		seen := musttest.Get(team.Senders(ctx, "d0.example", []string{"AS64600", "AS64600:yours"}))(t)
		if seen["AS64600:yours"].First != seen["AS64600"].First || seen["AS64600:yours"].Last <= seen["AS64600"].Last {
			t.Errorf("got the days %v, want those of the new key from the same first day on", seen)
		}
	})
}
