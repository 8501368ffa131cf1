package store

import (
	"context"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
)

const domainColumns = `id, name, active, record, record_domain, policy, purpose, report_mailbox,
	created_at, updated_at, grade, checked_at, known_at`

func scanDomain(scan scanner) (dmarcd.Domain, error) {
	var d dmarcd.Domain
	var createdAt, updatedAt, checkedAt, knownAt int64
	err := scan(&d.ID, &d.Name, &d.Active, &d.Record, &d.RecordDomain, &d.Policy, &d.Purpose, &d.ReportMailbox,
		&createdAt, &updatedAt, &d.Grade, &checkedAt, &knownAt)
	d.CreatedAt, d.UpdatedAt = fromUnix(createdAt), fromUnix(updatedAt)
	d.CheckedAt, d.KnownAt = fromUnix(checkedAt), fromUnix(knownAt)
	return d, err
}

// Domains that are added together are first looked at one after the other: at
// their DMARC record 50 a second, at everything 5.
const (
	firstSpacing     = 20 * time.Millisecond
	firstFullSpacing = 200 * time.Millisecond
)

// AddDomain adds a domain, whose name is as dmarcd.ParseName returns it. The
// schedule looks at its DNS from nextCheck on. A domain that the team has
// already is ErrConflict, one too many a *dmarcd.QuotaError. As every change that a team
// can ask for it takes the entries that the audit log gets in the same transaction.
func (t *Team) AddDomain(ctx context.Context, name string, nextCheck time.Time, audit ...dmarcd.AuditEntry) (dmarcd.Domain, error) {
	var domain dmarcd.Domain
	err := t.tx(ctx, func(tx tx) error {
		added, err := t.insertDomains(ctx, tx, []string{name}, nextCheck)
		if err != nil {
			return err
		}
		if added == 0 {
			return dmarcd.ErrConflict
		}
		if domain, err = t.domain(ctx, tx, name, ""); err != nil {
			return err
		}
		return tx.noteAll(ctx, t.id, audit, name)
	})
	if err != nil {
		return dmarcd.Domain{}, fmt.Errorf("add domain: %w", err)
	}
	return domain, nil
}

// AddDomains adds many domains at once and returns how many of them were new;
// all or, where they are too many (a *dmarcd.QuotaError), none. The schedule looks at
// them one after the other, from nextCheck on.
func (t *Team) AddDomains(ctx context.Context, names []string, nextCheck time.Time, audit ...dmarcd.AuditEntry) (added int, err error) {
	err = t.tx(ctx, func(tx tx) (err error) {
		if added, err = t.insertDomains(ctx, tx, names, nextCheck); err != nil || added == 0 {
			return err
		}
		about := names[0]
		if len(names) > 1 {
			about = fmt.Sprintf("%d domains", added)
		}
		return tx.noteAll(ctx, t.id, audit, about)
	})
	if err != nil {
		return 0, fmt.Errorf("add domains: %w", err)
	}
	return added, nil
}

// insertDomains inserts a row for each name that the team does not have yet,
// within the quota.
func (t *Team) insertDomains(ctx context.Context, tx tx, names []string, nextCheck time.Time) (added int, err error) {
	// Two additions count each other, and reports that come meanwhile see the domain or
	// are seen.
	if err := t.lock(ctx, tx); err != nil {
		return 0, err
	}
	quota, err := t.quota(ctx, tx)
	if err != nil {
		return 0, err
	}
	had, err := t.addresses(ctx, tx, names)
	if err != nil {
		return 0, err
	}
	now := t.store.now()
	back := unix(now.Add(-mailboxRest))
	var domains []owner
	var rows, addresses [][]any
	for _, name := range names {
		mailbox := newMailbox()
		switch before, known := had[name]; {
		case known && before.retiredAt == 0:
			continue // the team has it
		case known && before.retiredAt >= back:
			mailbox = before.mailbox
		}
		had[name] = address{name: name} // it may be named twice
		i := len(rows)
		due := nextCheck.Add(time.Duration(i) * firstSpacing)
		full := nextCheck.Add(time.Duration(i) * firstFullSpacing)
		id := dmarcd.DomainID(newID())
		domains = append(domains, owner{id, name})
		rows = append(rows, []any{id, t.id, name, unix(now), unix(now), mailbox, unix(full), unix(due)})
		addresses = append(addresses, []any{mailbox, t.id, name, id})
	}
	if len(rows) == 0 {
		return 0, nil
	}
	added, err = tx.insertMany(ctx, `INSERT INTO domains (id, team_id, name, created_at, updated_at, report_mailbox, next_full_at, next_check_at) VALUES `, rows, "")
	if err != nil {
		return added, err
	}
	if err := t.assignMailboxes(ctx, tx, addresses); err != nil {
		return added, err
	}
	if err := t.claimAdded(ctx, tx, domains); err != nil {
		return added, err
	}
	most := quota[dmarcd.QuotaDomains]
	if most == 0 {
		return added, nil
	}
	var have int64
	err = tx.queryRow(ctx, `SELECT count(*) FROM domains WHERE team_id = $1 AND deleted_at = 0`, []any{t.id}, &have)
	if err == nil && have > most {
		err = &dmarcd.QuotaError{Name: dmarcd.QuotaDomains, Max: most}
	}
	return added, err
}

// Domain returns the domain with that name, or ErrNotFound.
func (t *Team) Domain(ctx context.Context, name string) (found dmarcd.Domain, err error) {
	err = t.store.pointRead(ctx, func(ctx context.Context, read tx) error {
		found, err = t.domain(ctx, read, name, "")
		return err
	})
	return found, err
}

func (t *Team) domain(ctx context.Context, tx tx, name, lock string) (dmarcd.Domain, error) {
	return scanDomain(func(dest ...any) error {
		return tx.queryRow(ctx, `SELECT `+domainColumns+` FROM domains
			WHERE team_id = $1 AND name = $2 AND deleted_at = 0`+lock, []any{t.id, name}, dest...)
	})
}

// Domains returns up to limit domains whose names come after the given one,
// ordered by name, byte by byte.
func (t *Team) Domains(ctx context.Context, after string, limit int) ([]dmarcd.Domain, error) {
	return collectRead(ctx, t.store, `SELECT `+domainColumns+` FROM domains
		WHERE team_id = $1 AND name > $2 AND deleted_at = 0
		ORDER BY name LIMIT $3`, []any{t.id, after, limit}, scanDomain)
}

// SetPurpose declares what a domain is used for; "" takes the word back.
func (t *Team) SetPurpose(ctx context.Context, name string, purpose dmarcd.Purpose, audit ...dmarcd.AuditEntry) error {
	return t.change(ctx, audit, `UPDATE domains
		SET purpose = $1, updated_at = CASE WHEN purpose = $1 THEN updated_at ELSE $2 END
		WHERE team_id = $3 AND name = $4 AND deleted_at = 0`,
		purpose, unix(t.store.now()), t.id, name)
}

// DeleteDomain removes a domain and all that is known of it from the team's
// sight, in one short transaction. The rows themselves go later; see Purge.
func (t *Team) DeleteDomain(ctx context.Context, name string, audit ...dmarcd.AuditEntry) error {
	return t.txAgain(ctx, func(tx tx) error {
		var id dmarcd.DomainID
		err := tx.queryRow(ctx, `UPDATE domains SET deleted_at = $1
			WHERE team_id = $2 AND name = $3 AND deleted_at = 0 RETURNING id`,
			[]any{unix(t.store.now()), t.id, name}, &id)
		if err != nil {
			return err
		}
		if err := t.retireMailbox(ctx, tx, name); err != nil {
			return err
		}
		// The team's days are locked in the order in which count does.
		days, err := collect(ctx, tx, `SELECT team_days.day FROM team_days
			WHERE team_id = $1 AND day IN (SELECT day FROM domain_days WHERE team_id = $1 AND domain_id = $2)
			ORDER BY day`+t.store.dialect.lockRow, []any{t.id, id}, scanDay)
		if err != nil {
			return err
		}
		// The team's sums are those of its present domains.
		_, err = tx.exec(ctx, `UPDATE team_days SET
				`+subtractCounts("team_days", "gone")+`,
				changes = team_days.changes + 1,
				broken = team_days.changes + 1,
				removed = team_days.changes + 1
			FROM domain_days AS gone
			WHERE team_days.team_id = $1 AND gone.team_id = $1 AND gone.domain_id = $2 AND gone.day = team_days.day`,
			t.id, id)
		if err != nil {
			return err
		}
		gone := make(map[dmarcd.Day]change, len(days))
		for _, day := range days {
			gone[day] = change{taken: true}
		}
		if err := t.recountDays(ctx, tx, gone); err != nil {
			return err
		}
		return tx.noteAll(ctx, t.id, audit, name)
	})
}

func scanDay(scan scanner) (dmarcd.Day, error) {
	var day dmarcd.Day
	err := scan(&day)
	return day, err
}
