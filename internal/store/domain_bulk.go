package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// deletedAtOnce is the number of domains that a transaction of DeleteDomains deletes: it holds the
// lock of the team.
const deletedAtOnce = 100

// DeleteDomains deletes domains as DeleteDomain does, some in a transaction, and returns those that
// the team had. about is the target of the audit entries of a transaction with that many domains.
func (t *Team) DeleteDomains(ctx context.Context, names []string, audit func(deleted []string) dmarcd.AuditEntry) (deleted []string, err error) {
	for some := range slices.Chunk(names, deletedAtOnce) {
		var gone []string
		err := t.retryTx(ctx, func(tx tx) error {
			gone = nil
			if err := t.lock(ctx, tx); err != nil { // each domain is locked after the days of the previous one, which is out of order
				return err
			}
			for _, name := range some {
				err := t.deleteDomain(ctx, tx, name)
				if errors.Is(err, dmarcd.ErrNotFound) {
					continue
				}
				if err != nil {
					return err
				}
				gone = append(gone, name)
			}
			if len(gone) == 0 {
				return nil
			}
			tx.note(t.id, "", audit(gone))
			return nil
		})
		if err != nil {
			return deleted, fmt.Errorf("delete domains: %w", err)
		}
		deleted = append(deleted, gone...)
	}
	return deleted, nil
}

// TagDomains adds tags to domains and removes others, all or none, and returns the number of domains
// that it changed. It is a *dmarcd.InvalidError if a domain or the team would have too many.
func (t *Team) TagDomains(ctx context.Context, names, add, remove []string, audit ...dmarcd.AuditEntry) (changed int, err error) {
	err = t.tx(ctx, func(tx tx) error {
		if err := t.lock(ctx, tx); err != nil {
			return err
		}
		for some := range slices.Chunk(names, rowsPerQuery) {
			list, args := db.In([]any{t.id}, some)
			tags, err := db.CollectMap[string, string](ctx, tx, `SELECT name, tags FROM domains WHERE team_id = $1 AND deleted_at = 0 AND name IN `+list, args...)
			if err != nil {
				return err
			}
			for _, name := range some {
				text, present := tags[name]
				wanted := slices.DeleteFunc(append(strings.Fields(text), add...), func(tag string) bool { return slices.Contains(remove, tag) })
				slices.Sort(wanted)
				wanted = slices.Compact(wanted)
				if !present || formatTags(wanted) == text {
					continue
				}
				if len(wanted) > dmarcd.MaxTags {
					return &dmarcd.InvalidError{Field: "tags", Message: fmt.Sprintf("A domain has at most %d tags, and %s would have %d.", dmarcd.MaxTags, name, len(wanted))}
				}
				if _, err := tx.Exec(ctx, `UPDATE domains SET tags = $1 WHERE team_id = $2 AND name = $3 AND deleted_at = 0`, formatTags(wanted), t.id, name); err != nil {
					return err
				}
				changed++
			}
		}
		if changed == 0 {
			return nil
		}
		if err := t.limitTags(ctx, tx, "", add); err != nil {
			return err
		}
		tx.note(t.id, "", audit...)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("tag domains: %w", err)
	}
	return changed, nil
}

// CheckSoon makes full checks of domains due, and returns their number. Those of samples are never
// due.
func (t *Team) CheckSoon(ctx context.Context, names []string) (due int, err error) {
	now := unix(t.store.now())
	for some := range slices.Chunk(names, rowsPerQuery) {
		list, args := db.In([]any{t.id, now}, some)
		n, err := t.exec(ctx, `UPDATE domains SET next_full_at = $2, next_check_at = $2
			WHERE team_id = $1 AND deleted_at = 0 AND sample = FALSE AND name IN `+list, args...)
		if err != nil {
			return due, fmt.Errorf("make checks due: %w", err)
		}
		due += int(n)
	}
	return due, nil
}
