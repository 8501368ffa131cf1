package store

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// chunkBytes is the size of a chunk of an original.
const chunkBytes = 256 << 10

// pendingOriginal is an original to be stored at the end of a reception.
type pendingOriginal struct {
	dmarcd.Original
	*originalAhead
	ahead bool // written ahead, or known to exist
}

// pendingBytes limits the originals in memory.
const pendingBytes = 1 << 20

// insertOriginal queues the original of a delivery. One of several chunks was written ahead.
func (r *reception) insertOriginal(ctx context.Context, original dmarcd.Original) error {
	if slices.ContainsFunc(r.originals, func(p pendingOriginal) bool { return p.Hash == original.Hash }) {
		return nil
	}
	written := r.ahead.originals[original.Hash]
	ahead := written != nil
	if !ahead {
		first, err := nextChunk(original.Packed())
		if err != nil {
			return err
		}
		written = &originalAhead{first: first}
	}
	r.originals = append(r.originals, pendingOriginal{original, written, ahead})
	if r.originalBytes += len(written.first); r.originalBytes < pendingBytes {
		return nil
	}
	return r.flushOriginals(ctx)
}

// flushOriginals stores the queued originals, and renews the age of known ones.
func (r *reception) flushOriginals(ctx context.Context) error {
	rows := make([][]any, len(r.originals))
	for i, o := range r.originals {
		rows[i] = []any{r.team.id, o.Hash[:], o.Size, o.first, unix(r.now), append([]byte{}, o.key...), o.PackedSize}
	}
	hashes, err := db.InsertReturning(ctx, r.tx.Tx, `INSERT INTO originals (team_id, hash, size, packed, stored_at, chunks, bytes) VALUES `, rows,
		` ON CONFLICT (team_id, hash) DO NOTHING RETURNING hash`, db.Value[[]byte])
	if err != nil {
		return err
	}
	added := make(map[dmarcd.Hash]bool, len(hashes))
	for _, hash := range hashes {
		added[dmarcd.Hash(hash)] = true
	}
	for _, o := range r.originals {
		if err := r.settleOriginal(ctx, o, added[o.Hash]); err != nil {
			return err
		}
	}
	r.originals, r.originalBytes = nil, 0
	return nil
}

// settleOriginal finishes an original that was just added or that existed.
func (r *reception) settleOriginal(ctx context.Context, o pendingOriginal, added bool) error {
	changed, err := int64(1), error(nil)
	switch {
	case !added:
		changed, err = r.tx.Exec(ctx, `UPDATE originals SET stored_at = $1 WHERE team_id = $2 AND hash = $3`,
			unix(r.now), r.team.id, o.Hash[:])
	case len(o.key) > 0: // the chunks are in use now
		changed, err = r.tx.Exec(ctx, `DELETE FROM unused_chunks WHERE team_id = $1 AND chunks = $2 AND pending_until > 0`, r.team.id, o.key)
	case o.ahead:
		changed = 0 // it existed, so no chunks were written
	}
	if added {
		r.tx.charge(r.team.id, used{stored: o.PackedSize})
	}
	if err == nil && changed == 0 {
		err = db.ErrMoved // the existing one was removed meanwhile
	}
	return err
}

// ReportOriginal returns the original of a report, or ErrNotFound if the report or its
// original is gone.
func (t *Team) ReportOriginal(ctx context.Context, id dmarcd.ReportID) (dmarcd.StoredOriginal, error) {
	return t.original(ctx, `SELECT originals.chunks, originals.size, originals.packed
		FROM reports JOIN originals ON originals.team_id = reports.team_id AND originals.hash = reports.original
		WHERE reports.team_id = $1 AND reports.id = $2 AND `+visibleReport, t.id, id)
}

// RejectedOriginal returns the original of a rejected item, or ErrNotFound.
func (t *Team) RejectedOriginal(ctx context.Context, id dmarcd.RejectedID) (dmarcd.StoredOriginal, error) {
	return t.original(ctx, `SELECT originals.chunks, originals.size, originals.packed
		FROM rejected JOIN originals ON originals.team_id = rejected.team_id AND originals.hash = rejected.original
		WHERE rejected.team_id = $1 AND rejected.id = $2`, t.id, id)
}

func (t *Team) original(ctx context.Context, query string, args ...any) (dmarcd.StoredOriginal, error) {
	var original dmarcd.StoredOriginal
	var key, first []byte
	if err := t.store.QueryRow(ctx, query, args, &key, &original.Size, &first); err != nil {
		return dmarcd.StoredOriginal{}, err
	}
	original.Packed = &chunks{ctx: ctx, team: t, key: key, rest: first, n: 1}
	return original, nil
}

// chunks reads an original chunk by chunk.
type chunks struct {
	ctx  context.Context //nolint:containedctx // it lives as long as one read of the original
	team *Team
	key  []byte // empty if the first chunk is the only one
	rest []byte
	n    int // the next chunk
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		if len(c.key) == 0 {
			return 0, io.EOF
		}
		err := c.team.store.QueryRow(c.ctx, `SELECT packed FROM original_chunks WHERE team_id = $1 AND hash = $2 AND n = $3`,
			[]any{c.team.id, c.key, c.n}, &c.rest)
		if errors.Is(err, dmarcd.ErrNotFound) {
			return 0, io.EOF
		}
		if err != nil {
			return 0, err
		}
		c.n++
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// Rejected returns up to limit rejected items, newest first, older than before; 0 starts
// at the newest.
func (t *Team) Rejected(ctx context.Context, before dmarcd.RejectedID, limit int) ([]dmarcd.Rejected, error) {
	before = cmp.Or(before, math.MaxInt64)
	return db.Collect(ctx, t.store, `SELECT `+rejectedColumns+`
		WHERE rejected.team_id = $1 AND rejected.id < $2 ORDER BY rejected.id DESC LIMIT $3`, []any{t.id, before, limit}, scanRejected)
}

// RejectedByID returns a rejected item, or ErrNotFound.
func (t *Team) RejectedByID(ctx context.Context, id dmarcd.RejectedID) (dmarcd.Rejected, error) {
	return scanRejected(db.Row(ctx, t.store, `SELECT `+rejectedColumns+` WHERE rejected.team_id = $1 AND rejected.id = $2`, t.id, id))
}

// RejectedByDay returns the number of rejected reports by the day on which they arrived.
func (t *Team) RejectedByDay(ctx context.Context, from dmarcd.Day) (map[dmarcd.Day]int64, error) {
	const day = 24 * 60 * 60
	return db.CollectMap[dmarcd.Day, int64](ctx, t.store, `SELECT received_at / $3, count(*) FROM rejected WHERE team_id = $1 AND received_at >= $2 GROUP BY 1`,
		t.id, int64(from)*day, int64(day))
}

const rejectedColumns = `rejected.id, rejected.kind, rejected.member, rejected.reason, rejected.intake, rejected.name,
		rejected.received_at, rejected.genuine, rejected.authentication, COALESCE(originals.size, 0)
	FROM rejected LEFT JOIN originals ON originals.team_id = rejected.team_id AND originals.hash = rejected.original`

func scanRejected(scan db.Scanner) (dmarcd.Rejected, error) {
	var r dmarcd.Rejected
	var receivedAt int64
	var answer dmarcd.Genuine
	var authentication string
	err := scan(&r.ID, &r.Kind, &r.Member, &r.Reason, &r.Intake, &r.Name, &receivedAt, &answer, &authentication, &r.Size)
	r.ReceivedAt, r.Authentication = fromUnix(receivedAt), parseAuthentication(answer, authentication)
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
	all, err := db.Collect(ctx, tx, `DELETE FROM rejected WHERE team_id = $1 AND `+condition+` RETURNING original, bytes`,
		append([]any{t.id}, args...), func(scan db.Scanner) (g gone, err error) {
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
