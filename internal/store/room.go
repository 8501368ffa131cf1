package store

import (
	"context"
	"errors"

	"github.com/dmarcd/dmarcd"
)

const (
	// maxSum is where the sum of a domain stays: JSON numbers are exact up to there.
	maxSum = dmarcd.MaxCount
	// maxTeamSum is where the sum of a team stays. It has to hold those of many
	// domains, or one forged report would stop the counting for all of them; and
	// what is added to it at once must not overflow.
	maxTeamSum = 1 << 62
)

// room is how many messages the counters of a team can still take.
type room struct {
	team    int64
	domains map[dmarcd.DomainID]int64
}

// newRoom returns the room of a team without that of its domains.
func (t *Team) newRoom(ctx context.Context, tx tx) (room, error) {
	var counted int64
	err := tx.queryRow(ctx, `SELECT CAST(COALESCE(SUM(compliant + non_compliant), 0) AS BIGINT) FROM team_days WHERE team_id = $1`,
		[]any{t.id}, &counted)
	return room{team: maxTeamSum - counted, domains: make(map[dmarcd.DomainID]int64)}, err
}

// lock keeps a domain from being deleted, or counted for by others, until the
// transaction ends, and learns its room. It reports whether the domain is there.
func (t *Team) lock(ctx context.Context, tx tx, r room, id dmarcd.DomainID) (present bool, err error) {
	if _, locked := r.domains[id]; locked {
		return true, nil
	}
	var counted int64
	err = tx.queryRow(ctx, `SELECT compliant + non_compliant FROM domains
		WHERE team_id = $1 AND id = $2 AND deleted_at = 0`+t.store.dialect.lockRow, []any{t.id, id}, &counted)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r.domains[id] = maxSum - counted
	return true, nil
}

// fits reports whether the counters of the owners can take the messages of the
// shares.
func (r *room) fits(owners []owner, shares []dmarcd.Share) bool {
	wanted := make(map[dmarcd.DomainID]int64, 1)
	left := r.team
	for i, share := range shares {
		id, total := owners[i].id, share.Total()
		if id == 0 {
			continue
		}
		if total > left || total > r.domains[id]-wanted[id] {
			return false
		}
		left -= total
		wanted[id] += total
	}
	return true
}

// take takes messages of a domain off the room.
func (r *room) take(id dmarcd.DomainID, messages int64) {
	r.team -= messages
	r.domains[id] -= messages
}
