package service_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/senders"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// agrees compares the list of domains with the advice of each, without when it was computed.
func agrees(t *testing.T, team *service.Team, list []service.PostureRow) {
	t.Helper()
	for _, row := range list {
		got := row.Posture
		got.ComputedAt = time.Time{}
		advice := musttest.Get(team.Advice(t.Context(), row.Name))(t)
		if diff := cmp.Diff(advice.Posture(time.Time{}), got); diff != "" {
			t.Errorf("%s: -advice +list\n%s", row.Name, diff)
		}
	}
}

// TestPosturesAgreeWithAdvice has the list say of each domain what its page says, after the page was
// opened and after the refresh, and again after changes.
func TestPosturesAgreeWithAdvice(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		now := time.Now()
		w := service.New(s, service.Options{
			Insight: insight.New(&senders.Atlas{}, senders.NewCatalogue(nil), nameless{}, nil), Now: func() time.Time { return now },
		})
		team := advised(t, s, w, 3, "")
		stored := s.Team(musttest.Get(s.TeamByName(t.Context(), "acme"))(t).ID)
		list := func() []service.PostureRow {
			t.Helper()
			return musttest.Get(team.Postures(t.Context(), service.PostureFilter{Limit: 10}))(t)
		}
		refresh := func() {
			t.Helper()
			now = now.Add(time.Minute)
			musttest.Get(w.RefreshPostures(t.Context()))(t)
		}
		for _, row := range list() {
			if row.Stage != "" || !row.ComputedAt.IsZero() {
				t.Errorf("before the first computation: got %+v, want no stage", row.Posture)
			}
		}
		musttest.Get(team.Advice(t.Context(), "d1.example"))(t)
		if rows := list(); rows[0].Stage != "" || rows[1].Stage != dmarcd.StageMonitoring || rows[1].Messages != 7 || rows[1].Action == "" {
			t.Errorf("after the page of d1 was opened: got %+v and %+v, want only that of d1", rows[0].Posture, rows[1].Posture)
		}
		refresh()
		if rows := list(); len(rows) != 3 || rows[0].Stage != dmarcd.StageMonitoring {
			t.Fatalf("after the refresh: got %+v, want three domains with a stage", rows)
		}
		agrees(t, team, list())

		// Changes of everything that the advice follows from.
		musttest.Do(t, team.SetParked(t.Context(), "d0.example", true))
		musttest.Do(t, saveRecord(stored, "d1.example", "v=DMARC1; p=reject"))
		musttest.Get(stored.Receive(t.Context(), []*dmarcd.Delivery{
			storetest.Delivery(storetest.Aggregate("more", "d2.example", dmarcd.DayOf(now)-1, storetest.Passed("d2.example", 5), storetest.Failed("d2.example", 4))),
		}))(t)
		refresh()
		rows := list()
		if rows[0].Stage != dmarcd.StageParked || rows[1].Stage != dmarcd.StageEnforced || rows[2].Messages != 16 {
			t.Errorf("after changes and the refresh: got %+v, %+v, %+v", rows[0].Posture, rows[1].Posture, rows[2].Posture)
		}
		agrees(t, team, rows)
		agrees(t, team, list())
	})
}

// TestRefreshPostures computes what is missing, has changed, or is a day old, and nothing else, and
// rests in proportion to its work.
func TestRefreshPostures(t *testing.T) {
	t.Parallel()
	s := storetest.SQLite(t).Open(t, store.Options{})
	now := time.Now()
	w := service.New(s, service.Options{Insight: insight.New(&senders.Atlas{}, senders.NewCatalogue(nil), nameless{}, nil), Now: func() time.Time { return now }})
	team := advised(t, s, w, 2, "")
	stored := s.Team(musttest.Get(s.TeamByName(t.Context(), "acme"))(t).ID)
	computed := func() (at [2]time.Duration) {
		t.Helper()
		for i, row := range musttest.Get(team.Postures(t.Context(), service.PostureFilter{Limit: 10}))(t) {
			at[i] = now.Truncate(time.Second).Sub(row.ComputedAt)
		}
		return at
	}
	for _, step := range []struct {
		name string
		wait time.Duration
		do   func()
		want [2]time.Duration // the ages of the postures
	}{
		{"at first", 0, func() {}, [2]time.Duration{}},
		{"without a change", time.Hour, func() {}, [2]time.Duration{time.Hour, time.Hour}},
		{"after a change", time.Hour, func() { musttest.Do(t, saveRecord(stored, "d1.example", "v=DMARC1; p=reject")) }, [2]time.Duration{2 * time.Hour, 0}},
	} {
		now = now.Add(step.wait)
		step.do()
		if musttest.Get(w.RefreshPostures(t.Context()))(t) {
			t.Errorf("%s: got more work at once, want it to wait", step.name)
		}
		if got := computed(); got != step.want {
			t.Errorf("%s: got postures %v old, want %v", step.name, got, step.want)
		}
	}
	now = now.Add(25 * time.Hour)
	musttest.Get(w.RefreshPostures(t.Context()))(t)
	if got := computed(); got != [2]time.Duration{} {
		t.Errorf("after a day: got postures %v old, want new ones", got)
	}
}

// TestRefreshPosturesRests does nothing for 20 times as long as the previous step took.
func TestRefreshPosturesRests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.SQLite(t).Open(t, store.Options{})
		slow := time.Duration(0)
		w := service.New(s, service.Options{
			Insight: insight.New(&senders.Atlas{}, senders.NewCatalogue(nil), nameless{}, nil), Now: func() time.Time {
				time.Sleep(slow)
				return time.Now()
			},
		})
		team := advised(t, s, w, 1, "")
		missing := func() bool {
			return musttest.Get(team.Postures(t.Context(), service.PostureFilter{Limit: 1}))(t)[0].Stage == ""
		}
		musttest.Get(w.RefreshPostures(t.Context()))(t)
		if missing() {
			t.Fatal("the first step computed nothing")
		}
		slow = time.Second
		musttest.Get(w.RefreshPostures(t.Context()))(t)
		slow = 0
		stored := s.Team(musttest.Get(s.TeamByName(t.Context(), "acme"))(t).ID)
		musttest.Get(stored.AddDomains(t.Context(), []string{"a.example"}, time.Now().Add(time.Hour)))(t)
		musttest.Get(w.RefreshPostures(t.Context()))(t)
		if !missing() {
			t.Error("a step after one of seconds did not rest")
		}
		time.Sleep(10 * time.Minute)
		musttest.Get(w.RefreshPostures(t.Context()))(t)
		if missing() {
			t.Error("after the rest: the new domain has no posture")
		}
	})
}

// postureUses are the uses of postures and of many domains.
var postureUses = map[string]use{
	"Postures": reads(func(_ *world, t *service.Team) ([]service.PostureRow, error) {
		return t.Postures(ctx, service.PostureFilter{Limit: 10})
	}),
	"PostureCounts": reads(func(_ *world, t *service.Team) ([]service.PostureCount, error) {
		return t.PostureCounts(ctx, service.PostureFilter{})
	}),
	"DeleteDomains": {
		needs: remove, action: "domain.delete", target: ours, wants: dmarcd.ErrInvalid,
		team: func(_ *world, t *service.Team) error {
			return finds(t.DeleteDomains(ctx, []string{ours, "unknown.example", "'"}))
		},
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return errorOf(t.DeleteDomains(ctx, make([]string, dmarcd.MaxBulk+1)))
		},
	},
	"AddNames": {
		needs: change, action: "domain.add", wants: dmarcd.ErrInvalid,
		team: func(_ *world, t *service.Team) error {
			return finds(t.AddNames(ctx, []string{"Example.ORG.", "example.net", "'"}))
		},
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return errorOf(t.AddNames(ctx, make([]string, dmarcd.MaxBulk+1)))
		},
	},
	"DeleteNames": {
		needs: remove, action: "domain.delete", target: ours, wants: dmarcd.ErrInvalid,
		team: func(_ *world, t *service.Team) error {
			return finds(t.DeleteNames(ctx, []string{ours, "unknown.example", "'"}))
		},
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return errorOf(t.DeleteNames(ctx, make([]string, dmarcd.MaxBulk+1)))
		},
	},
	"TagDomains": {
		needs: change, action: "domain.tags", target: ours, wants: dmarcd.ErrInvalid,
		team: func(_ *world, t *service.Team) error {
			return finds(t.TagDomains(ctx, []string{ours, ours}, []string{"Shop"}, []string{"eu"}))
		},
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return errorOf(t.TagDomains(ctx, []string{ours}, nil, []string{"a b"}))
		},
	},
	"CheckSoon": {
		needs: change, wants: dmarcd.ErrInvalid, // a check is no decision of a user
		team: func(_ *world, t *service.Team) error { return finds(t.CheckSoon(ctx, []string{ours})) },
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return errorOf(t.CheckSoon(ctx, make([]string, dmarcd.MaxBulk+1)))
		},
	},
}
