package store_test

import (
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestGroupsGrantRoles signs one user in again and again, with other groups.
func TestGroupsGrantRoles(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		acme, beta := storetest.Team(t, s, "acme"), storetest.Team(t, s, "beta")
		other := musttest.Get(s.SignInIdentity(t.Context(), dmarcd.Identity{
			Issuer: "https://id.example", Subject: "other", Email: "other@example.com", HasGroups: true, Groups: []dmarcd.TeamRole{{Team: "beta", Role: dmarcd.RoleOwner}},
		}))(t)
		role := func(team string, role dmarcd.Role) dmarcd.TeamRole { return dmarcd.TeamRole{Team: team, Role: role} }
		for _, row := range []struct {
			name   string
			groups []dmarcd.TeamRole // nil is that they are unknown
			want   map[string]dmarcd.Role
		}{
			{"the first sign-in", []dmarcd.TeamRole{role("acme", dmarcd.RoleViewer), role("acme", dmarcd.RoleEditor), role("gone", dmarcd.RoleOwner)}, map[string]dmarcd.Role{"acme": dmarcd.RoleEditor, "beta": dmarcd.RoleViewer}},
			{"another role", []dmarcd.TeamRole{role("acme", dmarcd.RoleOwner)}, map[string]dmarcd.Role{"acme": dmarcd.RoleOwner, "beta": dmarcd.RoleViewer}},
			{"the last owner", []dmarcd.TeamRole{}, map[string]dmarcd.Role{"acme": dmarcd.RoleOwner, "beta": dmarcd.RoleViewer}},
			{"a membership of another kind", []dmarcd.TeamRole{role("acme", dmarcd.RoleOwner), role("beta", dmarcd.RoleOwner)}, map[string]dmarcd.Role{"acme": dmarcd.RoleOwner, "beta": dmarcd.RoleViewer}},
			{"unknown groups", nil, map[string]dmarcd.Role{"acme": dmarcd.RoleOwner, "beta": dmarcd.RoleViewer}},
		} {
			user := musttest.Get(s.SignInIdentity(t.Context(), dmarcd.Identity{
				Issuer: "https://id.example", Subject: "ann", Email: "ann@example.com", Admit: true,
				Join: []dmarcd.TeamRole{role("beta", dmarcd.RoleViewer)}, Groups: row.groups, HasGroups: row.groups != nil,
			}))(t)
			got := musttest.Get(s.Memberships(t.Context(), user.ID))(t)
			if len(got) != len(row.want) {
				t.Errorf("%s: got %+v, want %v", row.name, got, row.want)
			}
			for _, m := range got {
				if row.want[m.Team.Name] != m.Role {
					t.Errorf("%s: got %s in %s, want %v", row.name, m.Role, m.Team.Name, row.want)
				}
			}
		}
		// With another owner, leaving the group ends the membership, the sessions' rights and what depends on them.
		ann := musttest.Get(s.UserByEmail(t.Context(), "ann@example.com"))(t)
		musttest.Do(t, s.CreateInvitation(t.Context(), [32]byte{1}, dmarcd.Invitation{Email: "other@example.com", Team: acme.ID, Role: dmarcd.RoleOwner, ExpiresAt: time.Now().Add(time.Hour)}))
		musttest.Get(s.UseInvitation(t.Context(), [32]byte{1}, dmarcd.Claim{User: other.ID}))(t)
		musttest.Do(t, s.Team(acme.ID).Invite(t.Context(), [32]byte{2}, dmarcd.Invitation{Email: "x@example.com", Role: dmarcd.RoleViewer, CreatedBy: ann.ID, ExpiresAt: time.Now().Add(time.Hour)}))
		musttest.Get(s.SignInIdentity(t.Context(), dmarcd.Identity{Issuer: "https://id.example", Subject: "ann", HasGroups: true}))(t)
		if got := musttest.Get(s.Memberships(t.Context(), ann.ID))(t); len(got) != 1 || got[0].Team.ID != beta.ID {
			t.Errorf("got %+v, want beta alone", got)
		}
		if open := musttest.Get(s.Team(acme.ID).Invitations(t.Context()))(t); len(open) != 0 {
			t.Errorf("got the invitations %+v, want them void", open)
		}
		// One by a group who is invited is a member in their own right.
		sign := func(groups ...dmarcd.TeamRole) {
			t.Helper()
			musttest.Get(s.SignInIdentity(t.Context(), dmarcd.Identity{Issuer: "https://id.example", Subject: "ann", HasGroups: true, Groups: groups}))(t)
		}
		sign(role("acme", dmarcd.RoleEditor))
		musttest.Do(t, s.CreateInvitation(t.Context(), [32]byte{3}, dmarcd.Invitation{Email: ann.Email, Team: acme.ID, Role: dmarcd.RoleViewer, ExpiresAt: time.Now().Add(time.Hour)}))
		musttest.Get(s.UseInvitation(t.Context(), [32]byte{3}, dmarcd.Claim{User: ann.ID}))(t)
		sign()
		if got := musttest.Get(s.Memberships(t.Context(), ann.ID))(t); len(got) != 2 {
			t.Errorf("got %+v, want both teams", got)
		}
		entries := musttest.Get(s.Audit(t.Context(), store.AuditFilter{Action: "member.remove"}, store.Cursor{}, 10))(t)
		if len(entries) != 1 || entries[0].Team != acme.ID || entries[0].Actor != "ann@example.com" {
			t.Errorf("got the entries %+v, want one", entries)
		}
	})
}
