package store

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// lock blocks other transactions of the team that take a lock until this one ends. An unknown
// team is ErrNotFound.
func (t *Team) lock(ctx context.Context, tx tx) error {
	return t.lockBy(ctx, tx, t.store.db.LockRow)
}

// shareLock blocks transactions that call lock, but not other shareLocks. Writers of shares
// hold it, because adding a domain claims shares.
func (t *Team) shareLock(ctx context.Context, tx tx) error {
	return t.lockBy(ctx, tx, t.store.db.ShareRow)
}

func (t *Team) lockBy(ctx context.Context, tx tx, clause string) error {
	var id dmarcd.TeamID
	return tx.QueryRow(ctx, `SELECT team_id FROM team_locks WHERE team_id = $1`+clause, []any{t.id}, &id)
}

// domainLocks are the domains that a transaction has locked against deletion and concurrent
// counting.
//
// Transactions that change several domains, reports or days of a team do not deadlock, because each
// holds the team's lock: either the shared one, and then it locks rows in a fixed order (domains by
// id, then reports, then days of domains, then days of the team), or the exclusive one.
type domainLocks struct {
	team *Team
	tx   tx
	// held maps each requested domain to whether it exists.
	held map[dmarcd.DomainID]bool
	// exclusive is set if the transaction holds the exclusive lock of the team.
	exclusive bool
}

func (t *Team) newLocks(tx tx) *domainLocks {
	return &domainLocks{team: t, tx: tx, held: make(map[dmarcd.DomainID]bool)}
}

// errUnlocked means that a domain would have to be locked out of order. The transaction can be
// repeated with the exclusive lock.
var errUnlocked = fmt.Errorf("%w: a domain is not locked", db.ErrMoved)

// present reports whether a domain exists; if so, it is locked. The id 0 does not exist. A domain
// that lockAll did not lock is errUnlocked, unless the transaction holds the exclusive lock.
func (l *domainLocks) present(ctx context.Context, id dmarcd.DomainID) (bool, error) {
	present, known := l.held[id]
	switch {
	case known || id == 0:
		return present, nil
	case !l.exclusive:
		return false, errUnlocked
	}
	return l.lock(ctx, id)
}

func (l *domainLocks) lock(ctx context.Context, id dmarcd.DomainID) (present bool, err error) {
	found, err := db.Collect(ctx, l.tx, `SELECT id FROM domains WHERE team_id = $1 AND id = $2 AND deleted_at = 0`+l.team.store.db.LockRow,
		[]any{l.team.id, id}, db.Value[dmarcd.DomainID])
	l.held[id] = len(found) > 0
	return len(found) > 0, err
}

// lockAll locks domains in the order of their ids, and reports whether all exist. It is called
// once, before the transaction locks anything but the team.
func (l *domainLocks) lockAll(ctx context.Context, ids map[dmarcd.DomainID]struct{}) (present bool, err error) {
	present = true
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		if id == 0 {
			continue
		}
		here, err := l.lock(ctx, id)
		if err != nil {
			return false, err
		}
		present = present && here
	}
	return present, nil
}
