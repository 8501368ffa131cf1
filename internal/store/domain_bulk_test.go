package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestDeleteDomains deletes domains with their counts, over several transactions, each with an audit
// entry, and reports which there were.
func TestDeleteDomains(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		team := newTeam(t, db.Open(t, store.Options{}), "a")
		var names []string
		for i := range 150 {
			names = append(names, fmt.Sprintf("d%03d.example", i))
		}
		musttest.Get(team.AddDomains(t.Context(), append(slices.Clone(names), "rest.example"), time.Time{}))(t)
		for _, name := range []string{names[0], names[149], "rest.example"} {
			storetest.Count(t, team, name, dmarcd.DayCount{Day: 100, Summary: dmarcd.Summary{Compliant: 5}})
		}
		var noted []int
		deleted := musttest.Get(team.DeleteDomains(t.Context(), append([]string{"unknown.example"}, names...), func(some []string) dmarcd.AuditEntry {
			noted = append(noted, len(some))
			return dmarcd.AuditEntry{Action: "domain.delete"}
		}))(t)
		if !slices.Equal(deleted, names) || !slices.Equal(noted, []int{99, 51}) {
			t.Errorf("got %d deleted and entries about %v, want all 150", len(deleted), noted)
		}
		if left := musttest.Get(team.Domains(t.Context(), "", 10))(t); len(left) != 1 || left[0].Name != "rest.example" {
			t.Errorf("got %+v, want only rest.example", left)
		}
		if sum := musttest.Get(team.Summary(t.Context(), dmarcd.Days{}))(t); sum.Compliant != 5 {
			t.Errorf("got %+v, want the counts of rest.example", sum)
		}
		if entries := musttest.Get(team.Audit(t.Context(), store.AuditFilter{}, store.Cursor{}, 10))(t); len(entries) != 2 {
			t.Errorf("got %d entries, want one for each transaction", len(entries))
		}
	})
}

// TestTagDomains adds and removes tags of many domains: all or none.
func TestTagDomains(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		team := newTeam(t, db.Open(t, store.Options{}), "a")
		musttest.Get(team.AddDomains(t.Context(), []string{"a.example", "b.example", "c.example"}, time.Time{}))(t)
		full := make([]string, dmarcd.MaxTags)
		for i := range full {
			full[i] = fmt.Sprintf("t%02d", i)
		}
		musttest.Do(t, team.SetTags(t.Context(), "b.example", []string{"old", "shop"}))
		musttest.Do(t, team.SetTags(t.Context(), "c.example", full))
		tags := func() string {
			t.Helper()
			var all []string
			for _, name := range []string{"a.example", "b.example"} {
				all = append(all, strings.Join(musttest.Get(team.DomainTags(t.Context(), name))(t), "+"))
			}
			return strings.Join(all, " ")
		}
		entry := dmarcd.AuditEntry{Action: "domain.tags"}
		for _, step := range []struct {
			names, add, remove string
			changed            int
			want               string
		}{
			{"a.example b.example unknown.example", "shop eu", "old", 2, "eu+shop eu+shop"},
			{"a.example b.example", "eu", "", 0, "eu+shop eu+shop"},
			{"b.example", "", "shop eu", 1, "eu+shop "},
		} {
			changed, err := team.TagDomains(t.Context(), strings.Fields(step.names), strings.Fields(step.add), strings.Fields(step.remove), entry)
			if got := tags(); err != nil || changed != step.changed || got != step.want {
				t.Errorf("+%s -%s: got %d changed, %q, %v; want %d, %q", step.add, step.remove, changed, got, err, step.changed, step.want)
			}
		}
		if _, err := team.TagDomains(t.Context(), []string{"a.example", "c.example"}, []string{"new"}, nil, entry); !errors.Is(err, dmarcd.ErrInvalid) || tags() != "eu+shop " {
			t.Errorf("with too many tags on one domain: got %v and %q, want an error and no change", err, tags())
		}
		if entries := musttest.Get(team.Audit(t.Context(), store.AuditFilter{}, store.Cursor{}, 10))(t); len(entries) != 2 {
			t.Errorf("got %d entries, want one for each change", len(entries))
		}
	})
}

// TestCheckSoon makes domains due, and no samples.
func TestCheckSoon(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		team, sample := newTeam(t, s, "a"), newTeam(t, s, "b")
		musttest.Get(team.AddDomains(t.Context(), []string{"a.example", "b.example"}, time.Now().Add(24*time.Hour)))(t)
		musttest.Do(t, sample.AddSampleDomains(t.Context(), []string{"sample.example"}))
		if n := musttest.Get(team.CheckSoon(t.Context(), []string{"b.example", "unknown.example"}))(t); n != 1 {
			t.Errorf("got %d due, want one", n)
		}
		if n := musttest.Get(sample.CheckSoon(t.Context(), []string{"sample.example"}))(t); n != 0 {
			t.Errorf("got %d due samples, want none", n)
		}
		due := musttest.Get(s.ClaimDueDomains(t.Context(), time.Minute, map[dmarcd.TeamID]int{team.ID(): 10, sample.ID(): 10}))(t)
		if len(due) != 1 || due[0].Name != "b.example" || !due[0].Full {
			t.Errorf("got %+v due, want a full check of b.example", due)
		}
	})
}
