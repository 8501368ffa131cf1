package store

import (
	"cmp"
	"context"
	"math"

	"github.com/dmarcd/dmarcd"
)

// Rejected returns up to limit rejected items, newest first, older than before; 0 starts
// at the newest.
func (t *Team) Rejected(ctx context.Context, before dmarcd.RejectedID, limit int) ([]dmarcd.Rejected, error) {
	before = cmp.Or(before, math.MaxInt64)
	return collectRead(ctx, t.store, `SELECT `+rejectedColumns+`
		WHERE rejected.team_id = $1 AND rejected.id < $2 ORDER BY rejected.id DESC LIMIT $3`, []any{t.id, before, limit}, scanRejected)
}

// RejectedByID returns a rejected item, or ErrNotFound.
func (t *Team) RejectedByID(ctx context.Context, id dmarcd.RejectedID) (dmarcd.Rejected, error) {
	return scanRejected(rowOf(ctx, t.store, `SELECT `+rejectedColumns+` WHERE rejected.team_id = $1 AND rejected.id = $2`, t.id, id))
}

const rejectedColumns = `rejected.id, rejected.kind, rejected.member, rejected.reason, rejected.intake, rejected.name,
		rejected.received_at, rejected.genuine, rejected.verdict, COALESCE(originals.size, 0)
	FROM rejected LEFT JOIN originals ON originals.team_id = rejected.team_id AND originals.hash = rejected.original`

func scanRejected(scan scanner) (dmarcd.Rejected, error) {
	var r dmarcd.Rejected
	var receivedAt int64
	var answer dmarcd.Genuine
	var verdict string
	err := scan(&r.ID, &r.Kind, &r.Member, &r.Reason, &r.Intake, &r.Name, &receivedAt, &answer, &verdict, &r.Size)
	r.ReceivedAt, r.Verdict = fromUnix(receivedAt), parseVerdict(answer, verdict)
	return r, err
}

// SettleRejected removes a rejected item after a successful retry, and its original
// unless another item uses it. An unknown item is ErrNotFound.
func (t *Team) SettleRejected(ctx context.Context, id dmarcd.RejectedID) error {
	return t.retryTx(ctx, func(tx tx) error { return t.dropRejected(ctx, tx, id) })
}

// removeRejected removes the rejected items that match a condition, whose arguments start
// at $2, and originals that are no longer used. It returns the number of items.
func (t *Team) removeRejected(ctx context.Context, tx tx, condition string, args ...any) (int, error) {
	type gone struct {
		original []byte
		bytes    int64
	}
	all, err := collect(ctx, tx, `DELETE FROM rejected WHERE team_id = $1 AND `+condition+` RETURNING original, bytes`,
		append([]any{t.id}, args...), func(scan scanner) (g gone, err error) {
			err = scan(&g.original, &g.bytes)
			return g, err
		})
	if err != nil {
		return 0, err
	}
	for _, g := range all {
		tx.charge(t.id, used{stored: -rejectedBytes, unreadable: -g.bytes})
		if err := t.removeUnusedOriginal(ctx, tx, g.original); err != nil {
			return 0, err
		}
	}
	return len(all), nil
}
