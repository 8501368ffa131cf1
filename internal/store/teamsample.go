package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/dmarcd/dmarcd"
)

// AddSampleDomains adds domains for sample data. If the team has domains it is a
// *dmarcd.InvalidError: sample data is never mixed with other data. Adding another domain
// deletes the sample.
func (t *Team) AddSampleDomains(ctx context.Context, names []string, audit ...dmarcd.AuditEntry) error {
	err := t.audited(ctx, audit, "", func(tx tx) error {
		if err := t.lock(ctx, tx); err != nil {
			return err
		}
		var present bool
		err := tx.queryRow(ctx, `SELECT EXISTS (SELECT 1 FROM domains WHERE team_id = $1 AND deleted_at = 0)`, []any{t.id}, &present)
		if err != nil {
			return err
		}
		if present {
			return &dmarcd.InvalidError{Field: "sample", Message: "Sample data is for teams without domains."}
		}
		if _, _, err := t.insertDomains(ctx, tx, names, t.store.now()); err != nil {
			return err
		}
		_, err = tx.exec(ctx, `UPDATE domains SET sample = TRUE, next_check_at = $1, next_full_at = $1 WHERE team_id = $2 AND deleted_at = 0`, int64(never), t.id)
		return err
	})
	if err != nil {
		return fmt.Errorf("add sample domains: %w", err)
	}
	return nil
}

// HasSample reports whether the team has sample domains.
func (t *Team) HasSample(ctx context.Context) (bool, error) {
	var sample bool
	err := t.store.queryRow(ctx, `SELECT sample FROM domains WHERE team_id = $1 AND deleted_at = 0 LIMIT 1`, []any{t.id}, &sample)
	if errors.Is(err, dmarcd.ErrNotFound) {
		err = nil
	}
	return sample, err
}

// DeleteSample deletes the sample domains with all their data, as DeleteDomain does. It is
// ErrNotFound if there are none.
func (t *Team) DeleteSample(ctx context.Context, audit ...dmarcd.AuditEntry) error {
	return t.retryTx(ctx, func(tx tx) error {
		deleted, err := t.deleteSample(ctx, tx)
		if err == nil && deleted == 0 {
			err = dmarcd.ErrNotFound
		}
		if err != nil {
			return err
		}
		return tx.noteAll(ctx, t.id, audit, "")
	})
}

func (t *Team) deleteSample(ctx context.Context, tx tx) (deleted int, err error) {
	if err := t.lock(ctx, tx); err != nil { // it locks each domain after days of the previous one
		return 0, err
	}
	names, err := collect(ctx, tx, `SELECT name FROM domains WHERE team_id = $1 AND deleted_at = 0 AND sample = TRUE ORDER BY name`, []any{t.id}, scanValue[string])
	for _, name := range names {
		if err := t.deleteDomain(ctx, tx, name); err != nil {
			return 0, err
		}
	}
	return len(names), err
}
