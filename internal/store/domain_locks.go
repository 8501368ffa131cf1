package store

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/dmarcd/dmarcd"
)

// domainLocks are the domains that a transaction has locked against deletion and concurrent
// counting.
//
// Transactions that change several domains, reports or days of a team do not deadlock, because
// each holds the team's lock: either a shared one, and then locks rows in a fixed order
// (domains by id, then reports, then days of domains, then days of the team), or the
// exclusive one.
type domainLocks struct {
	team *Team
	tx   tx
	// held has the domains that were to be locked: true if the domain exists.
	held map[dmarcd.DomainID]bool
	// exclusive is set if the transaction holds the exclusive lock of the team.
	exclusive bool
}

func (t *Team) newLocks(tx tx) *domainLocks {
	return &domainLocks{team: t, tx: tx, held: make(map[dmarcd.DomainID]bool)}
}

// errUnlocked means that a domain has to be locked too late, that is, out of order. The
// transaction can be repeated with the exclusive lock.
var errUnlocked = fmt.Errorf("%w: a domain is not locked", errMoved)

// present reports whether a domain exists, which is locked then. 0 is none. A domain that lockAll
// did not lock is errUnlocked, unless the order does not matter.
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
	found, err := collect(ctx, l.tx, `SELECT id FROM domains WHERE team_id = $1 AND id = $2 AND deleted_at = 0`+l.team.store.dialect.lockRow,
		[]any{l.team.id, id}, scanValue[dmarcd.DomainID])
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
