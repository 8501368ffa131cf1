package store

import (
	"context"
	"fmt"

	"github.com/dmarcd/dmarcd"
)

const teamColumns = `id, name, api, created_at`

func scanTeam(scan scanner) (dmarcd.Team, error) {
	var team dmarcd.Team
	var createdAt int64
	err := scan(&team.ID, &team.Name, &team.API, &createdAt)
	team.CreatedAt = fromUnix(createdAt)
	return team, err
}

// CreateTeam creates a team. api adds it to the API whitelist. An existing name is
// ErrConflict. The team dmarcd.DefaultTeam has no quotas; others have those of the
// installation.
func (s *Store) CreateTeam(ctx context.Context, name string, api bool, audit ...dmarcd.AuditEntry) (dmarcd.Team, error) {
	var team dmarcd.Team
	err := s.tx(ctx, func(t tx) (err error) {
		if team, err = t.createTeam(ctx, name, api); err != nil {
			return err
		}
		return t.noteAll(ctx, 0, audit, team.Name)
	})
	return team, err
}

func (t tx) createTeam(ctx context.Context, name string, api bool) (dmarcd.Team, error) {
	name, err := dmarcd.ParseTeamName(name)
	if err != nil {
		return dmarcd.Team{}, err
	}
	if t.store.citus { // the row is inserted on each server, in any order: two of one name would be a deadlock
		if _, err := t.exec(ctx, `SELECT pg_advisory_xact_lock(`+teamsLock+`)`); err != nil {
			return dmarcd.Team{}, fmt.Errorf("create team: %w", err)
		}
	}
	team := dmarcd.Team{ID: dmarcd.TeamID(newID()), Name: name, API: api, CreatedAt: t.store.now()}
	_, err = t.exec(ctx, `INSERT INTO teams (`+teamColumns+`) VALUES ($1, $2, $3, $4)`,
		team.ID, team.Name, team.API, unix(team.CreatedAt))
	if err == nil {
		_, err = t.exec(ctx, `INSERT INTO team_locks (team_id) VALUES ($1)`, team.ID)
	}
	if err == nil && name == dmarcd.DefaultTeam {
		_, err = t.exec(ctx, `UPDATE teams SET quota_domains = 0, quota_stored = 0, quota_unreadable = 0, quota_reports = 0, quota_mailboxes = 0
			WHERE id = $1`, team.ID)
	}
	if err != nil {
		return dmarcd.Team{}, fmt.Errorf("create team: %w", err)
	}
	return team, nil
}

// Teams returns all teams, ordered by name.
func (s *Store) Teams(ctx context.Context) ([]dmarcd.Team, error) {
	return collectRead(ctx, s.own(), `SELECT `+teamColumns+` FROM teams ORDER BY name`, nil, scanTeam)
}

// TeamByName returns the team with that name, or ErrNotFound.
func (s *Store) TeamByName(ctx context.Context, name string) (dmarcd.Team, error) {
	return teamBy(ctx, s.own(), "name", name)
}

// teamBy returns the team with that value in a column.
func teamBy(ctx context.Context, from rowReader, column string, value any) (dmarcd.Team, error) {
	return scanTeam(rowOf(ctx, from, `SELECT `+teamColumns+` FROM teams WHERE `+column+` = $1`, value))
}

// SetAPI adds a team to the API whitelist or removes it. An unknown team is ErrNotFound.
func (s *Store) SetAPI(ctx context.Context, name string, allowed bool, audit ...dmarcd.AuditEntry) error {
	return s.audited(ctx, audit, name, func(t tx) error {
		team, err := teamBy(ctx, t, "name", name)
		if err != nil {
			return err
		}
		err = t.execOr(ctx, dmarcd.ErrNotFound, `UPDATE teams SET api = $1 WHERE id = $2`, allowed, team.ID)
		if err != nil || !s.citus {
			return err
		}
		// Wait for changes with its tokens, which do not lock the team; none is created meanwhile.
		if err := s.Team(team.ID).lock(ctx, t); err != nil {
			return err
		}
		_, err = collect(ctx, t, `SELECT id FROM tokens WHERE team_id = $1 ORDER BY id`+s.dialect.lockRow, []any{team.ID}, scanValue[dmarcd.TokenID])
		return err
	})
}
