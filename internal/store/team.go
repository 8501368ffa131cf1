package store

import (
	"context"

	"github.com/dmarcd/dmarcd"
)

// Team is one team's view of the database. Rows of other teams are ErrNotFound. It is safe for
// concurrent use and cheap to create.
type Team struct {
	store reads
	id    dmarcd.TeamID
	tag   string // see Tagged
}

// Team returns the view of a team. It does not check that the team exists: an unknown one has
// no data.
func (s *Store) Team(id dmarcd.TeamID) *Team {
	return &Team{store: reads{s, id}, id: id}
}

// ID returns the id of the team.
func (t *Team) ID() dmarcd.TeamID { return t.id }

// lock blocks other transactions of the team that take a lock until this one ends. An unknown
// team is ErrNotFound.
func (t *Team) lock(ctx context.Context, tx tx) error {
	return t.lockBy(ctx, tx, t.store.dialect.lockRow)
}

// shareLock blocks transactions that call lock, but not other shareLocks. Writers of shares
// hold it, because adding a domain claims shares.
func (t *Team) shareLock(ctx context.Context, tx tx) error {
	return t.lockBy(ctx, tx, t.store.dialect.shareRow)
}

func (t *Team) lockBy(ctx context.Context, tx tx, clause string) error {
	var id dmarcd.TeamID
	return tx.queryRow(ctx, `SELECT team_id FROM team_locks WHERE team_id = $1`+clause, []any{t.id}, &id)
}
