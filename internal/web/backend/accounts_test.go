package backend_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/internal/web"
)

func TestSignIn(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newService(t, db)
		s.owner(t, "acme", "ann@example.com")
		try := func(email, password, before string) (string, error) {
			return s.SignIn(t.Context(), web.SignInAttempt{Email: email, Password: password, Browser: web.Browser{Session: before}})
		}
		for _, row := range []struct{ name, email, password string }{
			{"a wrong password", "ann@example.com", "another few words"},
			{"a stranger", "bob@example.com", samplePassword},
			{"no address", "", samplePassword},
		} {
			if _, err := try(row.email, row.password, ""); !errors.Is(err, dmarcd.ErrUnauthorized) {
				t.Errorf("%s: got %v, want dmarcd.ErrUnauthorized", row.name, err)
			}
		}
		first, err := try("Ann@Example.com", samplePassword, "")
		if err != nil {
			t.Fatal(err)
		}
		viewer := s.viewer(t, first)
		if viewer.Name != "ann@example.com" || viewer.Access != web.AccessOwn || viewer.Role != "owner" || viewer.Team.Name != "acme" {
			t.Errorf("got %+v, want the owner of acme", viewer)
		}
		second, err := try("ann@example.com", samplePassword, first)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Viewer(t.Context(), first); !errors.Is(err, dmarcd.ErrUnauthorized) {
			t.Errorf("the session before: got %v, want dmarcd.ErrUnauthorized", err)
		}
		if err := s.SignOut(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Viewer(t.Context(), second); !errors.Is(err, dmarcd.ErrUnauthorized) {
			t.Errorf("after the sign-out: got %v, want dmarcd.ErrUnauthorized", err)
		}
	})
}

// TestTeams follows somebody from team to team.
func TestTeams(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newService(t, db)
		acme, zoo, others := s.newTeam(t, "acme"), s.newTeam(t, "zoo"), s.newTeam(t, "others")
		session := s.join(t, "", dmarcd.Invite{Email: "ann@example.com", Team: acme.ID, Role: dmarcd.RoleViewer})
		session = s.join(t, session, dmarcd.Invite{Email: "ann@example.com", Team: zoo.ID, Role: dmarcd.RoleEditor})

		viewer := s.viewer(t, session)
		want := []web.TeamChoice{{ID: acme.ID.String(), Name: "acme"}, {ID: zoo.ID.String(), Name: "zoo"}}
		if diff := cmp.Diff(want, viewer.Teams); diff != "" || viewer.Team != want[1] || viewer.Access != web.AccessEdit {
			t.Errorf("got team %+v, access %d and teams (-want +got):\n%s", viewer.Team, viewer.Access, diff)
		}
		if err := s.ChooseTeam(t.Context(), session, acme.ID.String()); err != nil {
			t.Fatal(err)
		}
		if viewer = s.viewer(t, session); viewer.Team != want[0] || viewer.Access != web.AccessView {
			t.Errorf("got team %+v and access %d, want to view acme", viewer.Team, viewer.Access)
		}
		for _, id := range []string{others.ID.String(), "team_1", "", "acme"} {
			if err := s.ChooseTeam(t.Context(), session, id); !errors.Is(err, dmarcd.ErrNotFound) {
				t.Errorf("choose %q: got %v, want dmarcd.ErrNotFound", id, err)
			}
		}

		user, err := dmarcd.ParseUserID(viewer.ID)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.store.Team(acme.ID).RemoveMember(t.Context(), user); err != nil {
			t.Fatal(err)
		}
		if viewer = s.viewer(t, session); viewer.Team != want[1] {
			t.Errorf("taken out of acme: got %+v, want zoo", viewer.Team)
		}
		if err := s.store.Team(zoo.ID).RemoveMember(t.Context(), user); err != nil {
			t.Fatal(err)
		}
		if viewer = s.viewer(t, session); viewer.Team != (web.TeamChoice{}) || viewer.Access != 0 || len(viewer.Teams) != 0 {
			t.Errorf("taken out of all: got %+v, want no team", viewer)
		}
	})
}

// TestOperator has somebody look at a team that they are no member of.
func TestOperator(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newService(t, db)
		acme, zoo := s.newTeam(t, "acme"), s.newTeam(t, "zoo")
		session := s.join(t, "", dmarcd.Invite{Email: "op@example.com", Operator: true})
		viewer := s.viewer(t, session)
		if !viewer.Operator || viewer.Team.ID != acme.ID.String() || viewer.Access != web.AccessOwn {
			t.Errorf("got %+v, want an operator who looks at the first team", viewer)
		}
		if err := s.ChooseTeam(t.Context(), session, zoo.ID.String()); err != nil {
			t.Fatal(err)
		}
		if viewer = s.viewer(t, session); viewer.Team.Name != "zoo" || len(viewer.Teams) != 1 {
			t.Errorf("got %+v, want zoo alone among the choices", viewer)
		}
	})
}
