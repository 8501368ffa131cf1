package store

import (
	"context"
	"errors"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// groupMember is a membership by groups.
type groupMember struct {
	team dmarcd.TeamID
	role dmarcd.Role
}

// joinGroups makes the memberships of a user follow their groups at the identity provider: those that a group made
// get its role, or end. Other memberships do not change. The last owner of a team remains, and teams that do
// not exist are ignored.
func (t tx) joinGroups(ctx context.Context, user dmarcd.User, roles []dmarcd.TeamRole) error {
	wanted, err := t.teamRoles(ctx, roles)
	if err != nil {
		return err
	}
	present, err := db.Collect(ctx, t, `SELECT team_id, role FROM members WHERE user_id = $1 AND by_group ORDER BY team_id`, []any{user.ID},
		func(scan db.Scanner) (m groupMember, err error) { return m, scan(&m.team, &m.role) })
	if err != nil {
		return err
	}
	for _, m := range present {
		team := t.store.Team(m.team)
		entry := dmarcd.AuditEntry{User: user.ID, Actor: user.Email, Detail: "by groups at the identity provider"}
		role, stays := wanted[m.team]
		switch {
		case !stays:
			entry.Action = "member.remove"
			err = team.removeMember(ctx, t, user.ID, []dmarcd.AuditEntry{entry})
		case role != m.role:
			entry.Action, entry.Detail = "member.role", string(role)+", "+entry.Detail
			err = team.setRole(ctx, t, user.ID, role, []dmarcd.AuditEntry{entry})
		}
		if err != nil && !errors.Is(err, dmarcd.ErrInvalid) { // which is the last owner
			return err
		}
		delete(wanted, m.team)
	}
	return t.joinTeams(ctx, user, wanted, true)
}

// teamRoles returns the greatest role in each team. Teams that do not exist are left out.
func (t tx) teamRoles(ctx context.Context, roles []dmarcd.TeamRole) (map[dmarcd.TeamID]dmarcd.Role, error) {
	greatest := map[dmarcd.TeamID]dmarcd.Role{}
	for _, of := range roles {
		var id dmarcd.TeamID
		err := t.QueryRow(ctx, `SELECT id FROM teams WHERE name = $1`, []any{of.Team}, &id)
		if errors.Is(err, dmarcd.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		greatest[id] = of.Role.Greater(greatest[id])
	}
	return greatest, nil
}

// joinTeams makes a user a member of teams, unless they are one.
func (t tx) joinTeams(ctx context.Context, user dmarcd.User, roles map[dmarcd.TeamID]dmarcd.Role, byGroup bool) error {
	teams := make([]dmarcd.TeamID, 0, len(roles))
	for team := range roles {
		teams = append(teams, team)
	}
	slices.Sort(teams)
	for _, team := range teams {
		changed, err := t.Exec(ctx, `INSERT INTO members (team_id, user_id, role, created_at, by_group) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (team_id, user_id) DO NOTHING`, team, user.ID, roles[team], unix(t.store.now()), byGroup)
		if err != nil {
			return err
		}
		if changed == 0 {
			continue
		}
		entry := dmarcd.AuditEntry{User: user.ID, Actor: user.Email, Action: "member.join", Detail: string(roles[team]) + ", by the identity provider"}
		t.note(team, user.Email, entry)
	}
	return nil
}
