package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
)

const (
	// doubtFor is when a change that the schedule saw is looked at again.
	doubtFor = time.Minute
	// fullDelay is how long after a change, or after a check that somebody
	// asked for, everything is looked at: whoever is at it often asks again.
	fullDelay = 5 * time.Second
	// fullGrace keeps requests for a check from having everything looked at
	// more than once a minute.
	fullGrace = time.Minute
)

// SaveCheck keeps a check of a domain and, where it is conclusive and believed,
// brings the domain's fields in line with it and writes events of what changed,
// in one transaction. It returns the domain as it is afterwards, or ErrNotFound
// if it was deleted meanwhile.
//
// A check that somebody asked for is believed at once. A change that the
// schedule sees is believed if no cache may hold the old answer any more, or if
// a second look, a minute later, sees the same. A check that began before the
// last one saved is dropped: what it saw is older news.
//
// A conclusive check with facts also goes into the domain's history, as an entry of its
// own or, where nothing changed, as a later time of the last one, and errors that
// appeared or were fixed become events. These are believed at once: such a check is a day
// after the last one, longer than caches hold an answer, or follows from a change that
// is believed.
func (t *Team) SaveCheck(ctx context.Context, name string, check dmarcd.Check, plan dmarcd.Plan) (dmarcd.Domain, error) {
	var domain dmarcd.Domain
	err := t.tx(ctx, func(tx tx) error {
		row, err := t.checkedDomain(ctx, tx, name)
		domain = row.Domain
		if err != nil {
			return err
		}
		// A time that is still to come was written by a clock that has been
		// set right since: it would have every look dropped until then.
		if check.At.Before(domain.CheckedAt) && !domain.CheckedAt.After(t.store.now()) {
			_, err := tx.exec(ctx, `UPDATE domains SET unfinished = 0 WHERE team_id = $1 AND id = $2`, t.id, domain.ID)
			return err
		}
		row.CheckedAt = check.At.UTC().Truncate(time.Second)
		if err := t.judge(ctx, tx, &row, check, plan); err != nil {
			return err
		}
		if check.Facts != nil && check.Conclusive {
			if err := t.saveEntry(ctx, tx, &row, check, plan); err != nil {
				return err
			}
		}
		domain = row.Domain
		return t.updateChecked(ctx, tx, row)
	})
	if err != nil {
		return dmarcd.Domain{}, fmt.Errorf("save check: %w", err)
	}
	return domain, nil
}

// checkedDomain is a domain with what only checks are about.
type checkedDomain struct {
	dmarcd.Domain
	knownUntil  time.Time
	failures    int
	reason      string
	doubted     string
	fullAt      time.Time
	nextFullAt  time.Time
	nextCheckAt time.Time
}

func (t *Team) checkedDomain(ctx context.Context, tx tx, name string) (checkedDomain, error) {
	var row checkedDomain
	var knownUntil, fullAt, nextFullAt, nextCheckAt int64
	domain, err := scanDomain(func(dest ...any) error {
		return tx.queryRow(ctx, `SELECT `+domainColumns+`, known_until, failures, reason, doubted, full_at, next_full_at, next_check_at
			FROM domains WHERE team_id = $1 AND name = $2 AND deleted_at = 0`+t.store.dialect.lockRow,
			[]any{t.id, name}, append(dest, &knownUntil, &row.failures, &row.reason, &row.doubted, &fullAt, &nextFullAt, &nextCheckAt)...)
	})
	row.Domain, row.knownUntil, row.fullAt = domain, fromUnix(knownUntil), fromUnix(fullAt)
	row.nextFullAt, row.nextCheckAt = fromUnix(nextFullAt), fromUnix(nextCheckAt)
	return row, err
}

func (t *Team) updateChecked(ctx context.Context, tx tx, row checkedDomain) error {
	if row.nextFullAt.Before(row.nextCheckAt) {
		row.nextCheckAt = row.nextFullAt
	}
	_, err := tx.exec(ctx, `UPDATE domains SET
			active = $1, record = $2, policy = $3, updated_at = $4, grade = $5, checked_at = $6, known_at = $7, known_until = $8,
			failures = $9, reason = $10, doubted = $11, full_at = $12, next_full_at = $13, next_check_at = $14, record_domain = $15,
			unfinished = 0
		WHERE team_id = $16 AND id = $17`,
		row.Active, row.Record, row.Policy, unix(row.UpdatedAt), row.Grade, unix(row.CheckedAt), unix(row.KnownAt), unix(row.knownUntil),
		row.failures, row.reason, row.doubted, unix(row.fullAt), unix(row.nextFullAt), unix(row.nextCheckAt), row.RecordDomain,
		t.id, row.ID)
	return err
}

// judge brings a domain in line with what a check saw of its DMARC record, as
// far as it is to be believed, and plans the next look.
func (t *Team) judge(ctx context.Context, tx tx, row *checkedDomain, check dmarcd.Check, plan dmarcd.Plan) error {
	now := t.store.now()
	if !check.Conclusive {
		row.failures++
		row.reason = check.Reason
		row.nextCheckAt = now.Add(plan.After(row.failures))
		if row.nextFullAt.Before(row.nextCheckAt) {
			row.nextFullAt = row.nextCheckAt // nobody would answer that either
		}
		return nil
	}
	row.failures, row.reason = 0, ""
	row.nextCheckAt = plan.Next

	seen, err := t.seen(ctx, tx, row.Domain, check)
	if err != nil {
		return err
	}
	change := fmt.Sprintf("%t %s %s", seen.Active, seen.Policy, seen.Record)
	changed := seen != row.Domain
	believed := check.Asked || row.KnownAt.IsZero() || !check.At.Before(row.knownUntil) || row.doubted == change
	if changed && !believed {
		row.doubted = change
		row.nextCheckAt = now.Add(doubtFor)
		return nil
	}
	row.doubted = ""
	if changed {
		if !row.KnownAt.IsZero() {
			t.addEvents(tx, row.ID, row.CheckedAt, dmarcd.RecordEvents(row.Domain, seen)...)
		}
		seen.UpdatedAt = now
	}
	if changed || check.Asked {
		due := now.Add(fullDelay)
		if again := row.fullAt.Add(fullGrace); again.After(due) {
			due = again
		}
		if due.Before(row.nextFullAt) {
			row.nextFullAt = due
		}
	}
	row.Domain = seen
	row.RecordDomain = check.RecordDomain // clients do not see it: no change
	row.KnownAt = row.CheckedAt
	row.knownUntil = row.CheckedAt.Add(check.TTL)
	return nil
}

// seen returns the domain as a conclusive check saw it.
func (t *Team) seen(ctx context.Context, tx tx, domain dmarcd.Domain, check dmarcd.Check) (dmarcd.Domain, error) {
	domain.Record, domain.Policy, domain.Active = check.Record, check.Policy, check.Usable
	if !check.Usable || !check.NeedsMailbox {
		return domain, nil
	}
	var err error
	domain.Active, err = t.receivesAt(ctx, tx, check.Mailboxes, domain.Name)
	return domain, err
}

// receivesAt reports whether one of the mailboxes is that of the domain or of a
// parent domain of the same team.
func (t *Team) receivesAt(ctx context.Context, tx tx, mailboxes []string, name string) (bool, error) {
	for _, mailbox := range mailboxes {
		var owner string
		err := tx.queryRow(ctx, `SELECT name FROM addresses
			WHERE team_id = $1 AND mailbox = $2 AND retired_at = 0`, []any{t.id, mailbox}, &owner)
		if errors.Is(err, dmarcd.ErrNotFound) {
			continue
		}
		if err != nil || dmarcd.Covers(owner, name) {
			return err == nil, err
		}
	}
	return false, nil
}
