package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

const (
	// inlineRows limits the records and shares in the transaction that makes deliveries visible. A
	// report above that, or above inlineSteps transactions of db.Dialect.StepRows rows, is written
	// ahead.
	inlineRows  = 10_000
	inlineSteps = 2
	// rowBytes is the length of texts that counts as a further row.
	rowBytes = 1 << 10
	// aheadBytes limits the texts of the records that one transaction writes ahead.
	aheadBytes = 2 << 20
	// pendingTime is how long the purge leaves rows alone that were written ahead, after the last
	// transaction.
	pendingTime = 10 * time.Minute
	// discardTimeout limits discard.
	discardTimeout = 5 * time.Second
)

// ahead is what was written before the transaction that makes it visible: large reports, in the
// state deleted until then, and the chunks of large originals. If the process dies, the purge
// removes them after pendingTime.
type ahead struct {
	team      *Team
	reports   map[*dmarcd.NewReport]*reportAhead
	originals map[dmarcd.Hash]*originalAhead
}

// reportAhead is a report that is too large for one transaction. Its id is 0 if the
// report is known and nothing was written.
type reportAhead struct {
	id     dmarcd.ReportID
	owners []owner
	// changes are the counts of the shares that had an owner.
	changes tally
	signers selectors
}

// originalAhead is an original of several chunks. Its key is empty if the original is
// known and nothing was written.
type originalAhead struct {
	first []byte
	key   []byte
}

// writeAhead writes the large parts of deliveries in short transactions. The caller must
// discard the result, even after an error.
func (t *Team) writeAhead(ctx context.Context, deliveries []*dmarcd.Delivery) (*ahead, error) {
	a := &ahead{team: t, reports: make(map[*dmarcd.NewReport]*reportAhead), originals: make(map[dmarcd.Hash]*originalAhead)}
	left, most := inlineRows, inlineSteps*t.store.db.StepRows
	for _, delivery := range deliveries {
		for i := range delivery.Reports {
			report := &delivery.Reports[i]
			if rows := report.Records + len(report.Shares) + int(report.TextBytes/rowBytes); rows <= min(left, most) {
				left -= rows
				continue
			}
			if err := t.Admit(ctx); err != nil { // before writing many rows in vain
				return a, err
			}
			if err := a.writeReport(ctx, delivery, report); err != nil {
				return a, err
			}
		}
		if err := a.writeOriginal(ctx, delivery); err != nil {
			return a, err
		}
	}
	return a, nil
}

// discard leaves what became unnecessary to the purge. It does not affect visible rows.
func (a *ahead) discard(ctx context.Context) {
	if len(a.reports) == 0 && len(a.originals) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	err := a.team.tx(ctx, func(tx tx) error {
		for _, report := range a.reports {
			if _, err := tx.Exec(ctx, `UPDATE reports SET pending_until = 0 WHERE team_id = $1 AND id = $2 AND pending_until > 0`, a.team.id, report.id); err != nil {
				return err
			}
		}
		for _, original := range a.originals {
			if _, err := tx.Exec(ctx, `UPDATE unused_chunks SET pending_until = 0 WHERE team_id = $1 AND chunks = $2`, a.team.id, original.key); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil { // the purge removes them after pendingTime anyway
		a.team.store.options.Log.WarnContext(ctx, "rows written ahead are removed later", "team", a.team.id, "error", err)
	}
}

// known reports whether a report with the same content is stored.
func (t *Team) known(ctx context.Context, report *dmarcd.NewReport) (bool, error) {
	var id dmarcd.ReportID
	err := t.store.QueryRow(ctx, `SELECT id FROM reports WHERE team_id = $1 AND identity = $2 AND content = $3 AND `+visibleReport,
		[]any{t.id, report.Key[:], report.Content[:]}, &id)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// writeReport writes a report with its shares and records, still invisible.
func (a *ahead) writeReport(ctx context.Context, delivery *dmarcd.Delivery, report *dmarcd.NewReport) error {
	written := &reportAhead{changes: make(tally), signers: make(selectors)}
	a.reports[report] = written
	known, err := a.team.known(ctx, report)
	if err != nil || known {
		return err
	}
	prepare(report, a.team.store.now())
	written.id = dmarcd.ReportID(a.team.store.nextID())
	step := a.team.store.db.StepRows
	for from := 0; from == 0 || from < len(report.Shares); from += step {
		to := min(from+step, len(report.Shares))
		owners, err := a.writeShares(ctx, delivery, report, written.id, from, to)
		if err != nil {
			return err
		}
		written.owners = append(written.owners, owners...)
		for i, owner := range owners {
			if owner.id != 0 {
				written.changes.add(tallyKey{owner.id, dmarcd.DayOf(report.Begin)}, countsOf(report, report.Shares[from+i]), written.id)
			}
		}
	}
	if report.EachRecord == nil {
		return nil
	}
	return a.writeRecords(ctx, report, written)
}

// writeShares writes some shares of a report, and the row of the report with the first
// ones. It locks their domains, so that none is deleted meanwhile.
func (a *ahead) writeShares(ctx context.Context, delivery *dmarcd.Delivery, report *dmarcd.NewReport, id dmarcd.ReportID, from, to int) ([]owner, error) {
	var owners []owner
	err := a.team.retryTx(ctx, func(tx tx) error {
		r := a.team.newReception(ctx, tx)
		if err := a.team.shareLock(ctx, tx); err != nil {
			return err
		}
		if from == 0 {
			inserted, err := r.insertReport(ctx, id, delivery, report, outcome{state: deleted, pendingUntil: r.now.Add(pendingTime)})
			if err == nil && !inserted {
				err = db.ErrMoved // another process generated the same id
			}
			if err != nil {
				return err
			}
		} else if err := a.complete(ctx, tx, id); err != nil {
			return err
		}
		some := dmarcd.NewReport{Report: report.Report, Shares: report.Shares[from:to]}
		var err error
		if owners, err = r.owners.ofShares(ctx, &some); err != nil {
			return err
		}
		if err := r.lockOwners(ctx, owners); err != nil {
			return err
		}
		for i, share := range some.Shares {
			if err := r.addShare(id, from+i, report, share, owners[i]); err != nil {
				return err
			}
		}
		return r.shares.Flush()
	})
	return owners, err
}

func (a *ahead) writeRecords(ctx context.Context, report *dmarcd.NewReport, written *reportAhead) error {
	numbers := make(map[string]int, len(report.Shares))
	for n, share := range report.Shares {
		numbers[share.From] = n
	}
	step := a.team.store.db.StepRows
	rows, bytes := make([][]any, 0, step), 0
	flush := func() error {
		err := a.team.retryTx(ctx, func(tx tx) error {
			if err := a.complete(ctx, tx, written.id); err != nil {
				return err
			}
			records := tx.Bulk(ctx, `records`, recordColumns)
			for _, row := range rows {
				if err := records.Add(row...); err != nil {
					return err
				}
			}
			return records.Flush()
		})
		rows, bytes = rows[:0], 0
		return err
	}
	err := a.team.eachRecord(report, written.id, written.owners, numbers, written.signers, func(values ...any) error {
		for _, value := range values {
			if text, ok := value.(string); ok {
				bytes += len(text)
			}
		}
		if rows = append(rows, values); len(rows) < step && bytes < aheadBytes {
			return nil
		}
		return flush()
	})
	if err != nil || len(rows) == 0 {
		return err
	}
	return flush()
}

// complete extends the time for which the purge leaves a report alone. It is ErrMoved if the purge
// has taken the report.
func (a *ahead) complete(ctx context.Context, tx tx, id dmarcd.ReportID) error {
	return tx.ExecOr(ctx, db.ErrMoved, `UPDATE reports SET pending_until = $1 WHERE team_id = $2 AND id = $3 AND state = 'deleted' AND pending_until > 0`,
		unix(a.team.store.now().Add(pendingTime)), a.team.id, id)
}

// writeOriginal writes the chunks of an original that has more than one and is needed.
func (a *ahead) writeOriginal(ctx context.Context, delivery *dmarcd.Delivery) error {
	hash := delivery.Original.Hash
	if a.originals[hash] != nil {
		return nil
	}
	packed := delivery.Original.Packed()
	first, err := nextChunk(packed)
	if err != nil || len(first) < chunkBytes {
		return err
	}
	chunk, err := nextChunk(packed)
	if err != nil || len(chunk) == 0 {
		return err
	}
	written := &originalAhead{first: first}
	a.originals[hash] = written
	needed, err := a.needsOriginal(ctx, delivery)
	if err != nil || !needed {
		return err
	}
	written.key = []byte(rand.Text())
	pending := func() int64 { return unix(a.team.store.now().Add(pendingTime)) }
	if _, err := a.team.exec(ctx, `INSERT INTO unused_chunks (team_id, chunks, pending_until) VALUES ($1, $2, $3)`, a.team.id, written.key, pending()); err != nil {
		return err
	}
	for n := 1; len(chunk) > 0; n++ {
		err := a.team.retryTx(ctx, func(tx tx) error {
			err := tx.ExecOr(ctx, db.ErrMoved, `UPDATE unused_chunks SET pending_until = $1 WHERE team_id = $2 AND chunks = $3 AND pending_until > 0`, pending(), a.team.id, written.key)
			if err != nil {
				return err
			}
			_, err = tx.Exec(ctx, `INSERT INTO original_chunks (team_id, hash, n, packed) VALUES ($1, $2, $3, $4)`, a.team.id, written.key, n, chunk)
			return err
		})
		if err != nil {
			return err
		}
		if chunk, err = nextChunk(packed); err != nil {
			return err
		}
	}
	return nil
}

// needsOriginal reports whether the original of a delivery will be stored: it is not
// stored yet, and not everything in the delivery is a duplicate.
func (a *ahead) needsOriginal(ctx context.Context, delivery *dmarcd.Delivery) (bool, error) {
	var one int
	err := a.team.store.QueryRow(ctx, `SELECT 1 FROM originals WHERE team_id = $1 AND hash = $2`, []any{a.team.id, delivery.Original.Hash[:]}, &one)
	if !errors.Is(err, dmarcd.ErrNotFound) {
		return false, err
	}
	if len(delivery.Rejections) > 0 {
		return true, nil
	}
	for i := range delivery.Reports {
		known, err := a.team.known(ctx, &delivery.Reports[i])
		if err != nil || !known {
			return true, err
		}
	}
	return false, nil
}

func nextChunk(r io.Reader) ([]byte, error) {
	return io.ReadAll(io.LimitReader(r, chunkBytes))
}

// publish makes a report visible that was written ahead, unless it has become a duplicate, and
// returns its outcome. owners are the current owners of its shares.
func (r *reception) publish(ctx context.Context, receipt *dmarcd.Receipt, delivery *dmarcd.Delivery, report *dmarcd.NewReport, written *reportAhead, owners []owner) (outcome, error) {
	found := wantedOutcome(report)
	versions, err := r.versions(ctx, report)
	if err != nil {
		return found, err
	}
	if len(versions) > 0 {
		if found, err = r.settle(ctx, receipt, delivery.Authentication, report, found); err != nil || receipt.Status == dmarcd.Duplicate {
			return found, err
		}
	}
	if written.id == 0 {
		return found, db.ErrMoved // the version that made it a duplicate is gone
	}
	// No row means that the purge took it.
	err = r.tx.ExecOr(ctx, db.ErrMoved, `UPDATE reports SET state = $1, held_reason = $2, pending_until = 0
		WHERE team_id = $3 AND id = $4 AND state = 'deleted' AND pending_until > 0`, found.state, found.heldReason, r.team.id, written.id)
	if err != nil || found.state != dmarcd.ReportCounted {
		return found, err
	}
	for key := range written.signers {
		if !r.locks.held[key.domain] {
			delete(written.signers, key) // the domain was deleted meanwhile
		}
	}
	r.signers.merge(written.signers)
	if err := r.countAhead(ctx, written, owners); err != nil {
		return found, fmt.Errorf("count a report: %w", err)
	}
	return found, nil
}

// countAhead counts a report that was written ahead. It reads the shares, of which there may be
// very many, only if some may have been claimed since.
func (r *reception) countAhead(ctx context.Context, written *reportAhead, owners []owner) error {
	for i, owner := range owners {
		if owner.id != 0 && written.owners[i].id == 0 {
			return r.locks.count(ctx, r.changes, written.id, true)
		}
	}
	for _, key := range written.changes.keys() {
		present, err := r.locks.present(ctx, key.domain)
		if err != nil {
			return err
		}
		if present {
			r.changes[key] = r.changes[key].merge(written.changes[key])
		}
	}
	return nil
}
