package service_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// customers adds teams with domains, of which the user with that address is a member: the domain n of the
// team has n messages in each team, and every third has something to do.
func (w *world) customers(email string, teams, domains int) []*store.Team {
	w.Helper()
	user := musttest.Get(w.store.UserByEmail(ctx, email))(w)
	views := make([]*store.Team, teams)
	for i := range views {
		team := musttest.Get(w.store.CreateTeam(ctx, fmt.Sprintf("team %03d", i), false))(w)
		view := w.store.Team(team.ID)
		views[i] = view
		hash := [32]byte{9, byte(i), byte(i >> 8)}
		w.must(w.store.CreateInvitation(ctx, hash, dmarcd.Invitation{Team: team.ID, Role: dmarcd.RoleViewer, ExpiresAt: time.Now().Add(time.Hour)}))
		musttest.Get(w.store.UseInvitation(ctx, hash, dmarcd.Claim{User: user.ID}))(w)
		var names []string
		for n := range domains {
			names = append(names, fmt.Sprintf("d%02d.example", n))
		}
		musttest.Get(view.AddDomains(ctx, names, time.Now().Add(time.Hour)))(w)
		var postures []store.StoredPosture
		for n, d := range musttest.Get(view.Domains(ctx, "", domains))(w) {
			p := dmarcd.Posture{Stage: dmarcd.StageEnforced, MailCounts: dmarcd.MailCounts{Messages: int64(n)}, ComputedAt: time.Now()}
			if n%3 == 0 {
				p.Stage, p.Action, p.Title = dmarcd.StageNone, dmarcd.ActionPublish, "Publish a record"
			}
			postures = append(postures, store.StoredPosture{Domain: d.ID, Posture: p})
		}
		w.must(view.SavePostures(ctx, postures))
	}
	return views
}

// customersOf is the filter that leaves out the first team of a world.
func customersOf(filter service.PostureFilter) service.TeamDomainFilter {
	filter.Search = ".example"
	return service.TeamDomainFilter{PostureFilter: filter}
}

// rowNames are the teams and domains of rows.
func rowNames(rows []service.TeamDomain) (names []string) {
	for _, row := range rows {
		names = append(names, strings.TrimPrefix(row.Team.Name, "team ")+"/"+strings.TrimSuffix(row.Name, ".example"))
	}
	return names
}

// TestDomainsOfTeams lists the domains of several teams in each order, whole and by pages.
func TestDomainsOfTeams(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		client, _ := w.signIn("cy@example.com")
		teams := w.customers("cy@example.com", 3, 7)
		w.must(teams[1].DeleteDomain(ctx, "d06.example"))
		account := musttest.Get(w.service.Account(ctx, client))(t)
		for _, test := range []struct {
			name   string
			filter service.PostureFilter
			team   string
			want   string // the first and the last rows
			rows   int
		}{
			{"by team", service.PostureFilter{}, "", "000/d00 000/d01 000/d02 … 002/d05 002/d06", 20},
			{"the last team first", service.PostureFilter{Sort: "-team"}, "", "002/d00 002/d01 002/d02 … 000/d05 000/d06", 20},
			{"an unknown order", service.PostureFilter{Sort: "colour"}, "", "000/d00 000/d01 000/d02 … 002/d05 002/d06", 20},
			{"by name", service.PostureFilter{Sort: "name"}, "", "000/d00 001/d00 002/d00 … 000/d06 002/d06", 20},
			{"the last name first", service.PostureFilter{Sort: "-name"}, "", "000/d06 002/d06 000/d05 … 001/d00 002/d00", 20},
			{"the first stage first", service.PostureFilter{Sort: "stage"}, "", "000/d00 001/d00 002/d00 … 001/d05 002/d05", 20},
			{"most messages first", service.PostureFilter{Sort: "-messages"}, "", "000/d06 002/d06 000/d05 … 001/d00 002/d00", 20},
			{"what needs someone", service.PostureFilter{Next: service.NextAct}, "", "000/d00 000/d03 000/d06 … 002/d03 002/d06", 8},
			{"one team", service.PostureFilter{Sort: "-name"}, "team 001", "001/d05 001/d04 001/d03 … 001/d01 001/d00", 6},
			{"a team of others", service.PostureFilter{}, "team 999", "", 0},
		} {
			filter := customersOf(test.filter)
			filter.Limit, filter.Team = 100, test.team
			found := musttest.Get(account.Domains(ctx, filter))(t)
			names := rowNames(found.Rows)
			short := strings.Join(names, " ")
			if len(names) > 5 {
				short = strings.Join(names[:3], " ") + " … " + strings.Join(names[len(names)-2:], " ")
			}
			if short != test.want || len(names) != test.rows {
				t.Errorf("%s: got %d rows %s, want %d rows %s", test.name, len(names), short, test.rows, test.want)
			}
			matching := 0
			for _, c := range found.Counts {
				if filter.Matches(c.PostureCount) {
					matching += c.Domains
				}
			}
			if matching != test.rows || len(found.Teams) != 4 {
				t.Errorf("%s: got %d domains counted and %d teams, want %d and 4", test.name, matching, len(found.Teams), test.rows)
			}
			var parts []string
			for filter.Limit = 3; ; {
				rows := musttest.Get(account.Domains(ctx, filter))(t).Rows
				if len(rows) == 0 {
					break
				}
				parts = append(parts, rowNames(rows)...)
				last := rows[len(rows)-1].Position()
				filter.After = &last
			}
			if diff := cmp.Diff(names, parts); diff != "" {
				t.Errorf("%s: by pages (-whole +pages):\n%s", test.name, diff)
			}
		}
	})
}

// TestDomainsOfTeamsOfOthers shows no team that the user has left, not even while it is read, nor one
// that an operator has only opened, nor one that requires a second factor that the user does not have.
func TestDomainsOfTeamsOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	client, _ := w.signIn("cy@example.com")
	teams := w.customers("cy@example.com", 3, 2)
	user := musttest.Get(w.store.UserByEmail(ctx, "cy@example.com"))(t)
	filter := customersOf(service.PostureFilter{Limit: 100})
	shown := func(account *service.Account) (names []string) {
		t.Helper()
		found := musttest.Get(account.Domains(ctx, filter))(t)
		for _, team := range found.Teams {
			names = append(names, team.Name)
		}
		for _, row := range found.Rows {
			if !slices.Contains(names, row.Team.Name) {
				t.Errorf("got a domain of %s, want only those of %v", row.Team.Name, names)
			}
		}
		for _, c := range found.Counts {
			if !slices.Contains(names, c.Team) {
				t.Errorf("got counts of %s, want only those of %v", c.Team, names)
			}
		}
		return names
	}
	account := musttest.Get(w.service.Account(ctx, client))(t)
	if got := strings.Join(shown(account), ", "); got != "acme, team 000, team 001, team 002" {
		t.Errorf("got the teams %s", got)
	}
	// The request has begun when the user leaves a team.
	w.must(teams[1].RemoveMember(ctx, user.ID))
	if got := strings.Join(shown(account), ", "); got != "acme, team 000, team 002" {
		t.Errorf("a team that the user has just left: got the teams %s", got)
	}
	w.operates(user)
	account = musttest.Get(w.service.Account(ctx, client))(t)
	w.must(account.SelectTeam(ctx, teams[1].ID()))
	account = musttest.Get(w.service.Account(ctx, client))(t)
	if account.Team.ID != teams[1].ID() {
		t.Fatal("an operator cannot select a team")
	}
	if got := strings.Join(shown(account), ", "); got != "acme, team 000, team 002" {
		t.Errorf("an operator: got the teams %s, want those of a member", got)
	}
	w.must(account.SelectTeam(ctx, w.team.ID))
	w.must(teams[2].RequireSecondFactor(ctx, true))
	for name, account := range map[string]*service.Account{"from before": account, "a new request": musttest.Get(w.service.Account(ctx, client))(t)} {
		if got := strings.Join(shown(account), ", "); got != "acme, team 000" {
			t.Errorf("%s, without the second factor of a team: got the teams %s", name, got)
		}
	}
	w.enrolled(account, time.Now())
	if got := strings.Join(shown(musttest.Get(w.service.Account(ctx, client))(t)), ", "); got != "acme, team 000, team 002" {
		t.Errorf("with the second factor: got the teams %s", got)
	}
}

// TestAlertsOfTeams counts the open alerts of each domain.
func TestAlertsOfTeams(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	client, _ := w.signIn("cy@example.com")
	teams := w.customers("cy@example.com", 2, 2)
	domain := musttest.Get(teams[1].Domain(ctx, "d01.example"))(t)
	var found []dmarcd.Detection
	for _, kind := range []dmarcd.EventKind{dmarcd.VolumeSpike, dmarcd.SpoofingBurst} {
		found = append(found, dmarcd.Detection{Kind: kind, Domain: domain.ID, Day: dmarcd.DayOf(time.Now())})
	}
	w.must(teams[1].SaveDetections(ctx, found, nil))
	account := musttest.Get(w.service.Account(ctx, client))(t)
	for _, row := range musttest.Get(account.Domains(ctx, customersOf(service.PostureFilter{Limit: 10})))(t).Rows {
		want := 0
		if row.Team.ID == teams[1].ID() && row.Name == "d01.example" {
			want = 2
		}
		if row.Alerts != want {
			t.Errorf("%s of %s: got %d open alerts, want %d", row.Name, row.Team.Name, row.Alerts, want)
		}
	}
}
