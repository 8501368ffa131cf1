package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

const domainColumns = `id, name, active, record, record_domain, policy, purpose, report_mailbox,
	created_at, updated_at, grade, checked_at, known_at, parked, sample, forwarding_accepted, proof, challenge`

func scanDomain(scan db.Scanner) (dmarcd.Domain, error) {
	var d dmarcd.Domain
	var createdAt, updatedAt, checkedAt, knownAt int64
	err := scan(&d.ID, &d.Name, &d.Active, &d.Record, &d.RecordDomain, &d.Policy, &d.Purpose, &d.ReportMailbox,
		&createdAt, &updatedAt, &d.Grade, &checkedAt, &knownAt, &d.Parked, &d.Sample, &d.ForwardingAccepted, &d.Proof, &d.Challenge)
	d.CreatedAt, d.UpdatedAt = fromUnix(createdAt), fromUnix(updatedAt)
	d.CheckedAt, d.KnownAt = fromUnix(checkedAt), fromUnix(knownAt)
	return d, err
}

// The first checks of domains that are added together are spread: 50 DMARC checks and 5 full
// checks a second.
const (
	firstSpacing     = 20 * time.Millisecond
	firstFullSpacing = 200 * time.Millisecond
)

// manyAdded is the number of added domains from which the planner needs new statistics at once.
const manyAdded = 1000

// AddDomain adds a domain; name is as dmarcd.ParseName returns it. Scheduled checks start at
// nextCheck. An existing domain is ErrConflict, one over the quota a *dmarcd.QuotaError. As
// every change of a team it writes the audit entries in the same transaction.
func (t *Team) AddDomain(ctx context.Context, name string, nextCheck time.Time, audit ...dmarcd.AuditEntry) (dmarcd.Domain, error) {
	var domain dmarcd.Domain
	var claiming bool
	err := t.audited(ctx, audit, name, func(tx tx) error {
		added, more, err := t.insertDomains(ctx, tx, []string{name}, nextCheck)
		claiming = more
		if err != nil {
			return err
		}
		if len(added) == 0 {
			return dmarcd.ErrConflict
		}
		domain, err = t.domain(ctx, tx, name)
		return err
	})
	if err != nil {
		return dmarcd.Domain{}, fmt.Errorf("add domain: %w", err)
	}
	if claiming {
		t.claimRest(ctx)
	}
	return domain, nil
}

// AddDomains adds domains and returns the number of new ones; all or, over the quota (a
// *dmarcd.QuotaError), none. Their first checks are spread from nextCheck on.
func (t *Team) AddDomains(ctx context.Context, names []string, nextCheck time.Time, audit ...dmarcd.AuditEntry) (added int, err error) {
	all, err := t.AddNewDomains(ctx, names, nextCheck, audit...)
	return len(all), err
}

// AddNewDomains is AddDomains, and returns the new ones.
func (t *Team) AddNewDomains(ctx context.Context, names []string, nextCheck time.Time, audit ...dmarcd.AuditEntry) (added []string, err error) {
	var claiming bool
	err = t.tx(ctx, func(tx tx) (err error) {
		if added, claiming, err = t.insertDomains(ctx, tx, names, nextCheck); err != nil || len(added) == 0 {
			return err
		}
		about := names[0]
		if len(names) > 1 {
			about = fmt.Sprintf("%d domains", len(added))
		}
		tx.note(t.id, about, audit...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("add domains: %w", err)
	}
	if t.store.db.Engine == db.Postgres && len(added) >= manyAdded {
		_, _ = t.store.exec(ctx, `ANALYZE domains`) // if this fails, autovacuum does it later
	}
	if claiming {
		t.claimRest(ctx)
	}
	return added, nil
}

// insertDomains inserts the names that the team does not have, within the quota. It reports
// whether claimRest has to follow.
func (t *Team) insertDomains(ctx context.Context, tx tx, names []string, nextCheck time.Time) (added []string, claiming bool, err error) {
	// The lock serializes additions, and reports that are being stored.
	if err := t.lock(ctx, tx); err != nil {
		return nil, false, err
	}
	var sample, waiting bool
	err = tx.QueryRow(ctx, `SELECT COALESCE((SELECT sample FROM domains WHERE team_id = $1 AND deleted_at = 0 LIMIT 1), FALSE),
			EXISTS (SELECT 1 FROM shares WHERE team_id = $1 AND domain_id = 0)`, []any{t.id}, &sample, &waiting)
	if err != nil {
		return nil, false, err
	}
	if sample { // sample data is never mixed with other domains
		if _, err := t.deleteSample(ctx, tx); err != nil {
			return nil, false, err
		}
	}
	quota, err := t.quota(ctx, tx)
	if err != nil {
		return nil, false, err
	}
	had, err := t.addresses(ctx, tx, names)
	if err != nil {
		return nil, false, err
	}
	now := t.store.now()
	back := unix(now.Add(-mailboxRest))
	var proof dmarcd.Proof
	if t.store.options.DomainProof {
		proof, waiting = dmarcd.ProofMissing, false // its proof claims what waits
	}
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
		id := dmarcd.DomainID(db.NewID())
		domains = append(domains, owner{id, name})
		added = append(added, name)
		rows = append(rows, []any{id, t.id, name, unix(now), unix(now), mailbox, unix(full), unix(due), proof, newMailbox()})
		addresses = append(addresses, []any{mailbox, t.id, name, id})
	}
	if len(rows) == 0 {
		return nil, false, nil
	}
	_, err = tx.InsertMany(ctx, `INSERT INTO domains (id, team_id, name, created_at, updated_at, report_mailbox, next_full_at, next_check_at, proof, challenge) VALUES `, rows, "")
	if err != nil {
		return nil, false, err
	}
	if err := t.assignMailboxes(ctx, tx, addresses); err != nil {
		return nil, false, err
	}
	if waiting {
		if claiming, err = t.claimAdded(ctx, tx, domains); err != nil {
			return nil, false, err
		}
	}
	most := quota[dmarcd.QuotaDomains]
	if most == 0 {
		return added, claiming, nil
	}
	var have int64
	err = tx.QueryRow(ctx, `SELECT count(*) FROM domains WHERE team_id = $1 AND deleted_at = 0`, []any{t.id}, &have)
	if err == nil && have > most {
		err = &dmarcd.QuotaError{Name: dmarcd.QuotaDomains, Max: most}
	}
	return added, claiming, err
}

// Domain returns the domain with that name, or ErrNotFound.
func (t *Team) Domain(ctx context.Context, name string) (dmarcd.Domain, error) {
	return t.domain(ctx, t.store, name)
}

func (t *Team) domain(ctx context.Context, from db.Querier, name string) (dmarcd.Domain, error) {
	return scanDomain(db.Row(ctx, from, `SELECT `+domainColumns+` FROM domains
		WHERE team_id = $1 AND name = $2 AND deleted_at = 0`, t.id, name))
}

// Domains returns up to limit domains after a name, in byte order.
func (t *Team) Domains(ctx context.Context, after string, limit int) ([]dmarcd.Domain, error) {
	tagged, args := t.tagged([]any{t.id, after, limit})
	return db.Collect(ctx, t.store, `SELECT `+domainColumns+` FROM domains
		WHERE team_id = $1 AND name > $2 AND deleted_at = 0`+tagged+`
		ORDER BY name LIMIT $3`, args, scanDomain)
}

// ActiveDomains returns the number of domains of the team, the number of active ones, and the first
// that is not active, "" if all are.
func (t *Team) ActiveDomains(ctx context.Context) (all, active int, open string, err error) {
	err = t.store.longQueryRow(ctx, `SELECT COUNT(*), COALESCE(SUM(CASE WHEN active = TRUE THEN 1 ELSE 0 END), 0),
			COALESCE(MIN(CASE WHEN active = TRUE THEN NULL ELSE name END), '')
		FROM domains WHERE team_id = $1 AND deleted_at = 0`, []any{t.id}, &all, &active, &open)
	return all, active, open, err
}

// SetPurpose sets what a domain is used for; "" clears it.
func (t *Team) SetPurpose(ctx context.Context, name string, purpose dmarcd.Purpose, audit ...dmarcd.AuditEntry) error {
	return t.change(ctx, audit, `UPDATE domains
		SET purpose = $1, updated_at = CASE WHEN purpose = $1 THEN updated_at ELSE $2 END
		WHERE team_id = $3 AND name = $4 AND deleted_at = 0`,
		purpose, unix(t.store.now()), t.id, name)
}

// SetParked marks a domain as not used for mail, or removes the mark. A change makes a full check
// due.
func (t *Team) SetParked(ctx context.Context, name string, parked bool, audit ...dmarcd.AuditEntry) error {
	return t.change(ctx, audit, `UPDATE domains SET parked = $1,
			next_full_at = CASE WHEN parked = $1 OR sample = TRUE THEN next_full_at ELSE $2 END,
			next_check_at = CASE WHEN parked = $1 OR sample = TRUE THEN next_check_at ELSE $2 END
		WHERE team_id = $3 AND name = $4 AND deleted_at = 0`, parked, unix(t.store.now()), t.id, name)
}

// AcceptForwarding stores the number of affected forwarded messages that a user accepts; 0 for
// none.
func (t *Team) AcceptForwarding(ctx context.Context, name string, messages int64, audit ...dmarcd.AuditEntry) error {
	return t.change(ctx, audit, `UPDATE domains SET forwarding_accepted = $1 WHERE team_id = $2 AND name = $3 AND deleted_at = 0`, messages, t.id, name)
}

// DeleteDomain hides a domain and its data in one short transaction. Purge removes the rows
// later.
func (t *Team) DeleteDomain(ctx context.Context, name string, audit ...dmarcd.AuditEntry) error {
	return t.retryTx(ctx, func(tx tx) error {
		if err := t.shareLock(ctx, tx); err != nil {
			return err
		}
		if err := t.deleteDomain(ctx, tx, name); err != nil {
			return err
		}
		tx.note(t.id, name, audit...)
		return nil
	})
}

func (t *Team) deleteDomain(ctx context.Context, tx tx, name string) error {
	var id dmarcd.DomainID
	err := tx.QueryRow(ctx, `UPDATE domains SET deleted_at = $1
		WHERE team_id = $2 AND name = $3 AND deleted_at = 0 RETURNING id`,
		[]any{unix(t.store.now()), t.id, name}, &id)
	if err != nil {
		return err
	}
	if err := t.retireMailbox(ctx, tx, name); err != nil {
		return err
	}
	kinds, err := db.Collect(ctx, tx, `SELECT DISTINCT kind FROM record_versions WHERE team_id = $1 AND domain_id = $2 AND label <> '' ORDER BY kind`, []any{t.id, id}, db.Value[dmarcd.RecordKind])
	if err != nil {
		return err
	}
	if len(kinds) > 0 {
		t.addRetired(tx, name, kinds...)
	}
	if err := t.retireLabels(ctx, tx, `domain_id = $2`, id); err != nil {
		return err
	}
	// Lock the team's days in the same order as count.
	_, err = db.Collect(ctx, tx, `SELECT team_days.day FROM team_days
		WHERE team_id = $1 AND day IN (SELECT day FROM domain_days WHERE team_id = $1 AND domain_id = $2)
		ORDER BY day`+t.store.db.LockRow, []any{t.id, id}, db.Value[dmarcd.Day])
	if err != nil {
		return err
	}
	// The team's sums are those of its present domains.
	_, err = tx.Exec(ctx, `UPDATE team_days SET
			`+changeCounts("team_days", "-", "gone")+`,
			changes = team_days.changes + 1,
			broken = team_days.changes + 1,
			removed = team_days.changes + 1
		FROM domain_days AS gone
		WHERE team_days.team_id = $1 AND gone.team_id = $1 AND gone.domain_id = $2 AND gone.day = team_days.day`, t.id, id)
	return err
}

// AddSampleDomains adds domains for sample data. If the team has domains it is a
// *dmarcd.InvalidError: sample data is never mixed with other data. Adding another domain
// deletes the sample.
func (t *Team) AddSampleDomains(ctx context.Context, names []string, audit ...dmarcd.AuditEntry) error {
	err := t.audited(ctx, audit, "", func(tx tx) error {
		if err := t.lock(ctx, tx); err != nil {
			return err
		}
		var present bool
		err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM domains WHERE team_id = $1 AND deleted_at = 0)`, []any{t.id}, &present)
		if err != nil {
			return err
		}
		if present {
			return &dmarcd.InvalidError{Field: "sample", Message: "Sample data is for teams without domains."}
		}
		if _, _, err := t.insertDomains(ctx, tx, names, t.store.now()); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE domains SET sample = TRUE, proof = '', next_check_at = $1, next_full_at = $1 WHERE team_id = $2 AND deleted_at = 0`, int64(never), t.id)
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
	err := t.store.QueryRow(ctx, `SELECT sample FROM domains WHERE team_id = $1 AND deleted_at = 0 LIMIT 1`, []any{t.id}, &sample)
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
		tx.note(t.id, "", audit...)
		return nil
	})
}

func (t *Team) deleteSample(ctx context.Context, tx tx) (deleted int, err error) {
	if err := t.lock(ctx, tx); err != nil { // each domain is locked after the days of the previous one, which is out of order
		return 0, err
	}
	names, err := db.Collect(ctx, tx, `SELECT name FROM domains WHERE team_id = $1 AND deleted_at = 0 AND sample = TRUE ORDER BY name`, []any{t.id}, db.Value[string])
	for _, name := range names {
		if err := t.deleteDomain(ctx, tx, name); err != nil {
			return 0, err
		}
	}
	return len(names), err
}
