package store

import (
	"context"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/rollup"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// currentRollup selects rollups that contain no deleted records; newer records may still
// be missing.
const currentRollup = `day_rollups.team_id = team_days.team_id AND day_rollups.day = team_days.day
	AND day_rollups.build = team_days.build AND team_days.in_rollup >= team_days.broken`

// rollupsPerStep is how many rollups of one team a step rebuilds.
const rollupsPerStep = 20

// rollupAge is how long a rollup may miss a few changes, so that a day that receives reports
// all the time is not rebuilt each time.
const rollupAge = 10 * time.Minute

// staleRollup selects days whose rollup must be rebuilt; $1 is the latest build time of a
// rollup that may miss few changes.
const staleRollup = `(compliant + non_compliant >= 2000 OR in_rollup >= 0) AND in_rollup < changes
	AND (in_rollup < broken OR changes - in_rollup >= 10 + in_rollup / 10 OR rollup_at <= $1)`

// BuildRollups rebuilds some rollups of changed days per team, and reports whether there may
// be more. A day that changes meanwhile is left for the next call; errors of one team do not
// affect others, see eachTeam.
func (s *Store) BuildRollups(ctx context.Context) (more bool, err error) {
	built := unix(s.now().Add(-rollupAge))
	return s.eachTeam(ctx, "day rollups", func(t *Team) (bool, error) { return t.buildRollups(ctx, built) },
		`SELECT DISTINCT team_id FROM team_days WHERE `+staleRollup, built)
}

func (t *Team) buildRollups(ctx context.Context, built int64) (more bool, err error) {
	type change struct {
		day     dmarcd.Day
		changes int64
	}
	changed, err := db.Collect(ctx, t.store, `SELECT day, changes FROM team_days WHERE `+staleRollup+` AND team_id = $2
		ORDER BY day LIMIT $3`, []any{built, t.id, rollupsPerStep}, func(scan db.Scanner) (change, error) {
		var c change
		return c, scan(&c.day, &c.changes)
	})
	if err != nil {
		return false, err
	}
	for _, c := range changed {
		b := &rollupBuild{team: t, day: c.day, changes: c.changes, id: db.NewID()}
		if err := b.run(ctx); err != nil {
			return false, err
		}
	}
	return len(changed) == rollupsPerStep, nil
}

// rollupBuild builds the rollup of a day. Blocks are written one by one and become visible
// together in the last transaction.
type rollupBuild struct {
	team    *Team
	day     dmarcd.Day
	changes int64 // change counter that the rollup covers
	// id separates its blocks from concurrent builds of other replicas.
	id int64
	// written is the number of written blocks; the last block, with records records, is pending.
	written int
	last    []byte
	records int
	// newest is the highest report id.
	newest dmarcd.ReportID
}

func (b *rollupBuild) run(ctx context.Context) error {
	err := b.team.store.recordSnapshot(ctx, func(read tx) error {
		turn := func() (end func()) { return b.team.JobTurn(ctx) }
		newest, err := b.team.encodeLoose(ctx, read, looseShares{from: b.day, to: b.day}, turn, func(block []byte, records int) error {
			return b.add(ctx, block, records)
		})
		b.newest = newest
		return err
	})
	if err != nil {
		return err
	}
	return b.team.tx(ctx, func(tx tx) error { return b.finish(ctx, tx) })
}

// add writes the previous block.
func (b *rollupBuild) add(ctx context.Context, block []byte, records int) error {
	if b.last != nil {
		err := b.team.tx(ctx, func(tx tx) error {
			if b.written == 0 {
				// Remove blocks of builds that never finished.
				if err := b.removeOthers(ctx, tx); err != nil {
					return err
				}
			}
			return b.insert(ctx, tx)
		})
		if err != nil {
			return err
		}
	}
	b.last, b.records = block, records
	return nil
}

func (b *rollupBuild) insert(ctx context.Context, tx tx) error {
	_, err := tx.Exec(ctx, `INSERT INTO day_rollups (team_id, day, build, n, records, block) VALUES ($1, $2, $3, $4, $5, $6)`,
		b.team.id, b.day, b.id, b.written, b.records, b.last)
	b.written++
	return err
}

// removeOthers removes the blocks of other builds, with the row of the day locked. A
// concurrent build of another replica fails in finish.
func (b *rollupBuild) removeOthers(ctx context.Context, tx tx) error {
	var current int64
	err := tx.QueryRow(ctx, `SELECT build FROM team_days WHERE team_id = $1 AND day = $2`+b.team.store.db.LockRow, []any{b.team.id, b.day}, &current)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `DELETE FROM day_rollups WHERE team_id = $1 AND day = $2 AND build NOT IN ($3, $4)`, b.team.id, b.day, current, b.id)
	return err
}

// finish makes the rollup current, unless records of the day changed meanwhile.
func (b *rollupBuild) finish(ctx context.Context, tx tx) error {
	// A transaction that changes records of the day waits for this row, or has changed it.
	current, err := tx.Exec(ctx, `UPDATE team_days SET in_rollup = $1, rollup_at = $2, build = $3, newest_report = $4
		WHERE team_id = $5 AND day = $6 AND changes = $1`, b.changes, unix(b.team.store.now()), b.id, b.newest, b.team.id, b.day)
	if err != nil {
		return err
	}
	complete := current > 0
	if complete && b.written > 0 {
		var blocks int
		err := tx.QueryRow(ctx, `SELECT COUNT(*) FROM day_rollups WHERE team_id = $1 AND day = $2 AND build = $3`, []any{b.team.id, b.day, b.id}, &blocks)
		if err != nil {
			return err
		}
		complete = blocks == b.written
	}
	if !complete {
		if current > 0 { // retried by the next call
			if _, err := tx.Exec(ctx, `UPDATE team_days SET in_rollup = -1 WHERE team_id = $1 AND day = $2`, b.team.id, b.day); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `DELETE FROM day_rollups WHERE team_id = $1 AND day = $2 AND build = $3`, b.team.id, b.day, b.id)
		return err
	}
	if b.last != nil {
		if err := b.insert(ctx, tx); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, `DELETE FROM day_rollups WHERE team_id = $1 AND day = $2 AND build <> $3`, b.team.id, b.day, b.id)
	return err
}

// blockWriter encodes records whose addresses and details are text.
type blockWriter struct {
	rollup.Writer
	emit func(block []byte, records int) error
	// identities caches the index of parsed details: a sender's mail has the same details
	// every day.
	identities map[string]uint32
	newest     dmarcd.ReportID
}

// begin starts a share.
func (w *blockWriter) begin(share rollup.Share) {
	w.newest = max(w.newest, share.Report)
	w.Begin(share)
}

func (w *blockWriter) add(r rollup.Record, address, details string) error {
	if w.Full() {
		if err := w.flush(); err != nil {
			return err
		}
	}
	index, known := w.identities[details]
	if !known {
		identity, err := parseIdentity(details)
		if err != nil {
			return err
		}
		if w.identities == nil {
			w.identities = make(map[string]uint32)
		}
		index = w.Identity(identity)
		w.identities[details] = index
	}
	r.Address, r.Identity = w.Address(address), index
	w.Add(r)
	return nil
}

// flush emits the pending records, if any.
func (w *blockWriter) flush() error {
	records := w.Records()
	if records == 0 {
		return nil
	}
	clear(w.identities)
	return w.emit(w.Take(), records)
}
