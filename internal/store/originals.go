package store

import (
	"context"
	"errors"
	"io"

	"github.com/dmarcd/dmarcd"
)

// chunkBytes is how much of an original is held in memory at once.
const chunkBytes = 256 << 10

// keepOriginal stores the bytes of a delivery; where they have several chunks, those
// were written ahead. Known ones get the age of now.
func (r *reception) keepOriginal(ctx context.Context, original dmarcd.Original) error {
	written := r.ahead.originals[original.Hash]
	if written == nil {
		first, err := nextChunk(original.Packed())
		if err != nil {
			return err
		}
		written = &originalAhead{first: first}
	}
	added, err := r.tx.exec(ctx, `INSERT INTO originals (team_id, hash, size, packed, stored_at, chunks, bytes) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (team_id, hash) DO NOTHING`, r.team.id, original.Hash[:], original.Size, written.first, unix(r.now),
		append([]byte{}, written.key...), original.PackedSize)
	if err != nil {
		return err
	}
	r.tx.charge(r.team.id, used{stored: added * original.PackedSize})
	changed := added
	switch {
	case added == 0:
		changed, err = r.tx.exec(ctx, `UPDATE originals SET stored_at = $1 WHERE team_id = $2 AND hash = $3`,
			unix(r.now), r.team.id, original.Hash[:])
	case len(written.key) > 0: // the chunks are in use from now on
		changed, err = r.tx.exec(ctx, `DELETE FROM unused_chunks WHERE team_id = $1 AND chunks = $2 AND lease_until > 0`, r.team.id, written.key)
	case r.ahead.originals[original.Hash] != nil:
		changed = 0 // it was there, so that no chunks were written
	}
	if err == nil && changed == 0 {
		err = errMoved // what was there was removed meanwhile
	}
	return err
}

// ReportOriginal returns the delivery that brought a report, or ErrNotFound where
// the report or, after its time, the original is gone.
func (t *Team) ReportOriginal(ctx context.Context, id dmarcd.ReportID) (dmarcd.KeptOriginal, error) {
	return t.original(ctx, `SELECT originals.chunks, originals.size, originals.packed
		FROM reports JOIN originals ON originals.team_id = reports.team_id AND originals.hash = reports.original
		WHERE reports.team_id = $1 AND reports.id = $2 AND `+visibleReport, t.id, id)
}

// RejectedOriginal returns the delivery of something rejected, or ErrNotFound.
func (t *Team) RejectedOriginal(ctx context.Context, id dmarcd.RejectedID) (dmarcd.KeptOriginal, error) {
	return t.original(ctx, `SELECT originals.chunks, originals.size, originals.packed
		FROM rejected JOIN originals ON originals.team_id = rejected.team_id AND originals.hash = rejected.original
		WHERE rejected.team_id = $1 AND rejected.id = $2`, t.id, id)
}

func (t *Team) original(ctx context.Context, query string, args ...any) (dmarcd.KeptOriginal, error) {
	var original dmarcd.KeptOriginal
	var key, first []byte
	if err := t.store.queryRow(ctx, query, args, &key, &original.Size, &first); err != nil {
		return dmarcd.KeptOriginal{}, err
	}
	original.Packed = &chunks{ctx: ctx, team: t, key: key, rest: first, n: 1}
	return original, nil
}

// chunks reads an original chunk by chunk.
type chunks struct {
	ctx  context.Context //nolint:containedctx // it lives as long as one read of the original
	team *Team
	key  []byte // empty for none but the first
	rest []byte
	n    int // the next chunk
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		if len(c.key) == 0 {
			return 0, io.EOF
		}
		err := c.team.store.queryRow(c.ctx, `SELECT packed FROM original_chunks WHERE team_id = $1 AND hash = $2 AND n = $3`,
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
