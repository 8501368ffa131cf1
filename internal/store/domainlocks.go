package store

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/dmarcd/dmarcd"
)

// domainLocks are the domains that a transaction has locked against deletion and concurrent
// counting.
type domainLocks struct {
	team *Team
	tx   tx
	held map[dmarcd.DomainID]struct{}
}

func (t *Team) newLocks(tx tx) *domainLocks {
	return &domainLocks{team: t, tx: tx, held: make(map[dmarcd.DomainID]struct{})}
}

// lock locks a domain and reports whether it exists. 0 is none.
func (l *domainLocks) lock(ctx context.Context, id dmarcd.DomainID) (present bool, err error) {
	if _, locked := l.held[id]; locked || id == 0 {
		return locked, nil
	}
	err = l.tx.queryRow(ctx, `SELECT id FROM domains WHERE team_id = $1 AND id = $2 AND deleted_at = 0`+l.team.store.dialect.lockRow,
		[]any{l.team.id, id}, &id)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return false, nil
	}
	if err == nil {
		l.held[id] = struct{}{}
	}
	return err == nil, err
}

// lockAll locks domains in order, so that transactions do not deadlock.
func (l *domainLocks) lockAll(ctx context.Context, ids map[dmarcd.DomainID]struct{}) (present bool, err error) {
	present = true
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		here, err := l.lock(ctx, id)
		if err != nil {
			return false, err
		}
		present = present && (here || id == 0)
	}
	return present, nil
}
