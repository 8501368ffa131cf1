package store_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

func TestSenderClasses(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		acme := storetest.Team(t, s, "acme")
		team := s.Team(acme.ID)
		if err := team.SetSenderClasses(t.Context(), "example.com", map[string]dmarcd.Class{"sendgrid": dmarcd.ClassYours}); !errors.Is(err, dmarcd.ErrNotFound) {
			t.Errorf("got %v for a domain that is not there, want ErrNotFound", err)
		}
		musttest.Get(team.AddDomain(t.Context(), "example.com", time.Now()))(t)
		for _, step := range []struct {
			sender string
			class  dmarcd.Class
			want   map[string]dmarcd.Class
		}{
			{"sendgrid", dmarcd.ClassYours, map[string]dmarcd.Class{"sendgrid": dmarcd.ClassYours}},
			{"AS64496", dmarcd.ClassSpoofing, map[string]dmarcd.Class{"sendgrid": dmarcd.ClassYours, "AS64496": dmarcd.ClassSpoofing}},
			{"sendgrid", dmarcd.ClassUnknown, map[string]dmarcd.Class{"sendgrid": dmarcd.ClassUnknown, "AS64496": dmarcd.ClassSpoofing}},
			{"sendgrid", "", map[string]dmarcd.Class{"AS64496": dmarcd.ClassSpoofing}},
			{"sendgrid", "", map[string]dmarcd.Class{"AS64496": dmarcd.ClassSpoofing}},
		} {
			musttest.Do(t, team.SetSenderClasses(t.Context(), "example.com", map[string]dmarcd.Class{step.sender: step.class}))
			got, err := team.SenderClasses(t.Context(), "example.com")
			if err != nil || !maps.Equal(got, step.want) {
				t.Errorf("after %s %q: got %v, %v, want %v", step.sender, step.class, got, err, step.want)
			}
		}
	})
}

// TestSenderClassesForAllDomains sets classes for all domains, also for one that is added later. Those
// of a domain win.
func TestSenderClassesForAllDomains(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		team, other := newTeam(t, s, "acme"), newTeam(t, s, "other")
		ids := []dmarcd.DomainID{addDomain(t, team, "a.example").ID}
		addDomain(t, other, "a.example")
		before := musttest.Get(team.AdviceStates(t.Context(), ids, dmarcd.Days{}))(t)[ids[0]]
		musttest.Do(t, team.SetSenderClasses(t.Context(), "", map[string]dmarcd.Class{"AS1:others": dmarcd.ClassSpoofing, "sendgrid": dmarcd.ClassYours}))
		if after := musttest.Get(team.AdviceStates(t.Context(), ids, dmarcd.Days{}))(t)[ids[0]]; after == before {
			t.Error("got the same state of a domain after a class for all domains, want another")
		}
		musttest.Do(t, team.SetSenderClasses(t.Context(), "a.example", map[string]dmarcd.Class{"sendgrid": dmarcd.ClassUnknown, "AS2": dmarcd.ClassYours}))
		addDomain(t, team, "b.example")
		want := map[string]map[string]dmarcd.Class{
			"a.example": {"AS1:others": dmarcd.ClassSpoofing, "sendgrid": dmarcd.ClassUnknown, "AS2": dmarcd.ClassYours},
			"b.example": {"AS1:others": dmarcd.ClassSpoofing, "sendgrid": dmarcd.ClassYours},
		}
		domains := musttest.Get(team.SenderDomains(t.Context(), func(dmarcd.CheckID) bool { return true }, nil))(t)
		for _, d := range domains {
			one := musttest.Get(team.SenderClasses(t.Context(), d.Name))(t)
			if !maps.Equal(d.Classes, want[d.Name]) || !maps.Equal(one, want[d.Name]) {
				t.Errorf("%s: got %v and %v, want %v", d.Name, d.Classes, one, want[d.Name])
			}
		}
		if got := musttest.Get(other.SenderClasses(t.Context(), "a.example"))(t); len(got) > 0 {
			t.Errorf("got %v for another team, want nothing", got)
		}
	})
}

// The state of a domain differs when its mail, its check or the class of a sender does.
func TestAdviceStates(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		team := newTeam(t, s, "acme")
		ids := make([]dmarcd.DomainID, 200) // more than one query reads
		for i := range ids {
			ids[i] = addDomain(t, team, fmt.Sprintf("n%d.example", i)).ID
		}
		state := func(i int) store.AdviceState {
			t.Helper()
			states := musttest.Get(team.AdviceStates(t.Context(), ids, dmarcd.Days{}))(t)
			if len(states) != len(ids) {
				t.Fatalf("got %d states, want %d", len(states), len(ids))
			}
			if states[ids[0]] != (store.AdviceState{}) {
				t.Errorf("got %v for a domain without mail and check, want nothing", states[ids[0]])
			}
			return states[ids[i]]
		}
		before := state(150)
		changes := []struct {
			name   string
			change func()
		}{
			{"a class", func() {
				musttest.Do(t, team.SetSenderClasses(t.Context(), "n150.example", map[string]dmarcd.Class{"a": dmarcd.ClassYours}))
			}},
			{"another sender", func() {
				musttest.Do(t, team.SetSenderClasses(t.Context(), "n150.example", map[string]dmarcd.Class{"b": dmarcd.ClassYours}))
			}},
			{"another class", func() {
				musttest.Do(t, team.SetSenderClasses(t.Context(), "n150.example", map[string]dmarcd.Class{"a": dmarcd.ClassSpoofing}))
			}},
			{"mail", func() {
				storetest.Count(t, team, "n150.example", dmarcd.DayCount{Day: 100, Summary: dmarcd.Summary{Compliant: 3}})
			}},
			{"a check", func() {
				musttest.Get(team.SaveCheck(t.Context(), "n150.example", facts.Check{At: time.Now(), Conclusive: true, Facts: &facts.Facts{}}, dmarcd.Plan{}))(t)
			}},
		}
		for _, c := range changes {
			c.change()
			after := state(150)
			if after == before {
				t.Errorf("%s did not change the state", c.name)
			}
			if again := state(150); again != after {
				t.Errorf("after %s: got %v, then %v", c.name, after, again)
			}
			before = after
		}
	})
}

// TestSenderClassesAreLimited sets the classes of as many senders as a team may.
func TestSenderClassesAreLimited(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		team := newTeam(t, s, "acme")
		addDomain(t, team, "example.com")
		addDomain(t, team, "example.org")
		const digit = `(VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9))`
		musttest.Get(db.SQL(t).ExecContext(t.Context(), `INSERT INTO sender_classes (team_id, domain_id, sender, class)
			SELECT domains.team_id, domains.id, 's' || a.column1 || b.column1 || c.column1 || d.column1 || e.column1, 'yours'
			FROM domains, `+digit+` a, `+digit+` b, `+digit+` c, `+digit+` d, `+digit+` e WHERE domains.name = 'example.com'`))(t)
		var invalid *dmarcd.InvalidError
		if err := team.SetSenderClasses(t.Context(), "example.org", map[string]dmarcd.Class{"sendgrid": dmarcd.ClassYours}); !errors.As(err, &invalid) {
			t.Errorf("got %v, want an InvalidError", err)
		}
		musttest.Do(t, team.SetSenderClasses(t.Context(), "example.com", map[string]dmarcd.Class{"s00007": ""}))
		musttest.Do(t, team.SetSenderClasses(t.Context(), "example.org", map[string]dmarcd.Class{"sendgrid": dmarcd.ClassYours}))
	})
}

// TestSenderDomains expects all domains of a team or of a tag, with their classes, and the facts of
// each latest check that is not known.
func TestSenderDomains(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		team, other := newTeam(t, s, "acme"), newTeam(t, s, "other")
		addDomain(t, other, "other.example")
		const count = 120 // more than one query reads
		want := make([]dmarcd.SenderDomain, count)
		for i := range want {
			want[i].Name = fmt.Sprintf("n%d.example", i)
			want[i].ID = addDomain(t, team, want[i].Name).ID
		}
		for i, at := range []time.Time{time.Unix(1e9, 0), time.Unix(2e9, 0)} {
			for n := i; n < count; n++ { // the first domain has one check, all others two
				check := facts.Check{At: at, Conclusive: true, Facts: &facts.Facts{Domain: want[n].Name, SPF: facts.SPF{Record: fmt.Sprint(i)}}}
				musttest.Get(team.SaveCheck(t.Context(), want[n].Name, check, dmarcd.Plan{}))(t)
			}
		}
		for n := range want {
			want[n].Check = musttest.Get(team.LatestCheck(t.Context(), want[n].Name))(t).ID
		}
		musttest.Do(t, team.SetSenderClasses(t.Context(), "n7.example", map[string]dmarcd.Class{"AS64496:yours": dmarcd.ClassSpoofing}))
		want[7].Classes = map[string]dmarcd.Class{"AS64496:yours": dmarcd.ClassSpoofing}
		records := make(map[dmarcd.CheckID]string)
		ask := func(team *store.Team) []dmarcd.SenderDomain {
			t.Helper()
			known := func(id dmarcd.CheckID) bool { return records[id] != "" }
			return musttest.Get(team.SenderDomains(t.Context(), known, func(id dmarcd.CheckID, f *facts.Facts) {
				if known(id) {
					t.Errorf("got the facts of check %s, which are known", id)
				}
				records[id] = f.Domain + " " + f.SPF.Record
			}))(t)
		}
		first, last := want[0].Check, want[119].Check
		sorted := func(domains []dmarcd.SenderDomain) []dmarcd.SenderDomain {
			return slices.SortedFunc(slices.Values(domains), func(a, b dmarcd.SenderDomain) int { return strings.Compare(a.Name, b.Name) })
		}
		if diff := cmp.Diff(sorted(want), sorted(ask(team))); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		if len(records) != count || records[first] != "n0.example 0" || records[last] != "n119.example 1" {
			t.Errorf("got the records %v", records)
		}
		ask(team)
		if got := ask(team.Tagged("shop")); len(got) != 0 {
			t.Errorf("got %v of a tag that no domain has", got)
		}
	})
}
