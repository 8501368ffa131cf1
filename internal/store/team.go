package store

import (
	"context"

	"github.com/dmarcd/dmarcd"
)

// Team is one team's view of the database. Whatever it returns or changes is
// that team's; the rows of others are ErrNotFound, as if they were not there.
// It is safe for concurrent use and costs nothing to make.
type Team struct {
	store *Store
	id    dmarcd.TeamID
}

// Team returns the view of the team with that id. It does not look whether the
// team exists: one that does not owns nothing.
func (s *Store) Team(id dmarcd.TeamID) *Team {
	return &Team{store: s, id: id}
}

// ID returns the id of the team.
func (t *Team) ID() dmarcd.TeamID { return t.id }

// lock keeps other transactions that hold a lock of the team waiting until this one
// ends. A team that does not exist is ErrNotFound.
func (t *Team) lock(ctx context.Context, tx tx) error {
	return t.lockBy(ctx, tx, t.store.dialect.lockRow)
}

// shareLock keeps transactions waiting that call lock, not those that share it too. Who
// writes shares, or counts them, holds it: a domain that is added meanwhile claims them.
func (t *Team) shareLock(ctx context.Context, tx tx) error {
	return t.lockBy(ctx, tx, t.store.dialect.shareRow)
}

func (t *Team) lockBy(ctx context.Context, tx tx, clause string) error {
	var id dmarcd.TeamID
	return tx.queryRow(ctx, `SELECT team_id FROM team_locks WHERE team_id = $1`+clause, []any{t.id}, &id)
}
