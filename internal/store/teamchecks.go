package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
)

// SaveCheck keeps a check of a domain and, where it is conclusive, brings the
// domain's fields in line with it, in one transaction. The next check is due at
// nextCheck. It returns the domain as it is afterwards, or ErrNotFound if it was
// deleted meanwhile. A check that began before the last one saved is dropped:
// what it saw is older news.
func (t *Team) SaveCheck(ctx context.Context, name string, check dmarcd.Check, nextCheck time.Time) (dmarcd.Domain, error) {
	var domain dmarcd.Domain
	err := t.store.tx(ctx, func(tx tx) (err error) {
		domain, err = t.domain(ctx, tx, name, t.store.dialect.lockRow)
		if err != nil || check.At.Before(domain.CheckedAt) {
			return err
		}
		if check.Conclusive {
			if err := t.apply(ctx, tx, &domain, check); err != nil {
				return err
			}
		}
		domain.CheckedAt = check.At.UTC().Truncate(time.Second)
		if err := t.keepCheck(ctx, tx, domain, check); err != nil {
			return err
		}
		_, err = tx.exec(ctx, `UPDATE domains
			SET active = $1, record = $2, policy = $3, updated_at = $4, checked_at = $5, next_check_at = $6
			WHERE team_id = $7 AND id = $8`,
			domain.Active, domain.Record, domain.Policy, unix(domain.UpdatedAt), unix(domain.CheckedAt), unix(nextCheck),
			t.id, domain.ID)
		return err
	})
	if err != nil {
		return dmarcd.Domain{}, fmt.Errorf("save check: %w", err)
	}
	return domain, nil
}

// apply brings the domain's fields in line with a conclusive check.
func (t *Team) apply(ctx context.Context, tx tx, domain *dmarcd.Domain, check dmarcd.Check) error {
	before := *domain
	domain.Record, domain.Policy, domain.Active = check.Record, check.Policy, check.Usable
	if check.Usable && check.NeedsMailbox {
		var err error
		if domain.Active, err = t.receivesAt(ctx, tx, check.Mailboxes, domain.Name); err != nil {
			return err
		}
	}
	if *domain != before {
		domain.UpdatedAt = t.store.now()
	}
	return nil
}

// receivesAt reports whether one of the mailboxes is that of the domain or of a
// parent domain of the same team.
func (t *Team) receivesAt(ctx context.Context, tx tx, mailboxes []string, name string) (bool, error) {
	for _, mailbox := range mailboxes {
		var owner string
		err := tx.queryRow(ctx, `SELECT name FROM domains
			WHERE team_id = $1 AND report_mailbox = $2 AND deleted_at = 0`, []any{t.id, mailbox}, &owner)
		if errors.Is(err, dmarcd.ErrNotFound) {
			continue
		}
		if err != nil || dmarcd.Covers(owner, name) {
			return err == nil, err
		}
	}
	return false, nil
}

// keepCheck writes the check down: as a row of its own, or, if it came out like
// the one before, as a later time of that row.
func (t *Team) keepCheck(ctx context.Context, tx tx, domain dmarcd.Domain, check dmarcd.Check) error {
	at := unix(check.At)
	active := check.Conclusive && domain.Active
	changed, err := tx.exec(ctx, `UPDATE checks SET last_at = $1
		WHERE team_id = $2 AND domain_id = $3
			AND id = (SELECT id FROM checks WHERE team_id = $2 AND domain_id = $3 ORDER BY last_at DESC, id LIMIT 1)
			AND conclusive = $4 AND reason = $5 AND active = $6 AND record = $7 AND policy = $8`,
		at, t.id, domain.ID, check.Conclusive, check.Reason, active, check.Record, check.Policy)
	if err != nil || changed > 0 {
		return err
	}
	_, err = tx.exec(ctx, `INSERT INTO checks (id, team_id, domain_id, first_at, last_at, conclusive, reason, active, record, policy)
		VALUES ($1, $2, $3, $4, $4, $5, $6, $7, $8, $9)`,
		newID(), t.id, domain.ID, at, check.Conclusive, check.Reason, active, check.Record, check.Policy)
	return err
}
