package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

const mailboxColumns = `id, team_id, host, port, security, username, method, folder, after, move_to,
	uid_validity, last_uid, created_at, seen_at, error, error_at, paused_at, lease_until`

func scanMailbox(scan db.Scanner) (dmarcd.Mailbox, error) {
	var m dmarcd.Mailbox
	var createdAt, seenAt, errorAt, pausedAt, leaseUntil int64
	err := scan(&m.ID, &m.Team, &m.Host, &m.Port, &m.Security, &m.Username, &m.Method, &m.Folder, &m.After, &m.MoveTo,
		&m.UIDValidity, &m.LastUID, &createdAt, &seenAt, &m.Error, &errorAt, &pausedAt, &leaseUntil)
	m.CreatedAt, m.SeenAt = fromUnix(createdAt), fromUnix(seenAt)
	m.ErrorAt, m.PausedAt, m.LeaseUntil = fromUnix(errorAt), fromUnix(pausedAt), fromUnix(leaseUntil)
	return m, err
}

// AddMailbox stores a mailbox and returns it with its id. seal receives it with the id, and
// returns the secret sealed for that id. An invalid mailbox is an InvalidError, one over the
// quota a *dmarcd.QuotaError.
func (t *Team) AddMailbox(ctx context.Context, m dmarcd.Mailbox, seal func(dmarcd.Mailbox) ([]byte, error), audit ...dmarcd.AuditEntry) (dmarcd.Mailbox, error) {
	if err := m.Validate(); err != nil {
		return dmarcd.Mailbox{}, err
	}
	added := dmarcd.Mailbox{
		ID: dmarcd.MailboxID(db.NewID()), Team: t.id,
		Host: m.Host, Port: m.Port, Security: m.Security, Username: m.Username, Method: m.Method,
		Folder: m.Folder, After: m.After, MoveTo: m.MoveTo, CreatedAt: t.store.now(),
	}
	sealed, err := seal(added)
	if err != nil {
		return dmarcd.Mailbox{}, err
	}
	err = t.audited(ctx, audit, added.ID.String(), func(tx tx) error {
		if err := t.admitMailbox(ctx, tx); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO mailboxes
			(id, team_id, host, port, security, username, method, secret, folder, after, move_to, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
			added.ID, t.id, added.Host, added.Port, added.Security, added.Username, added.Method, sealed,
			added.Folder, added.After, added.MoveTo, unix(added.CreatedAt))
		return err
	})
	if err != nil {
		return dmarcd.Mailbox{}, fmt.Errorf("add mailbox: %w", err)
	}
	return added, nil
}

// admitMailbox returns a *dmarcd.QuotaError if the team may not add a mailbox, and blocks
// concurrent additions.
func (t *Team) admitMailbox(ctx context.Context, tx tx) error {
	if err := t.lock(ctx, tx); err != nil {
		return err
	}
	quota, err := t.quota(ctx, tx)
	if err != nil {
		return err
	}
	var have int64
	if err := tx.QueryRow(ctx, `SELECT count(*) FROM mailboxes WHERE team_id = $1`, []any{t.id}, &have); err != nil {
		return err
	}
	return quota.Check(dmarcd.Usage{dmarcd.QuotaMailboxes: have}, dmarcd.QuotaMailboxes)
}

// Mailboxes returns the team's mailboxes without secrets, oldest first.
func (t *Team) Mailboxes(ctx context.Context) ([]dmarcd.Mailbox, error) {
	return db.Collect(ctx, t.store, `SELECT `+mailboxColumns+` FROM mailboxes
		WHERE team_id = $1 ORDER BY created_at, id`, []any{t.id}, scanMailbox)
}

// RemoveMailbox removes a mailbox and its secret. Its reports stay.
func (t *Team) RemoveMailbox(ctx context.Context, id dmarcd.MailboxID, audit ...dmarcd.AuditEntry) error {
	return t.change(ctx, audit, `DELETE FROM mailboxes WHERE team_id = $1 AND id = $2`, t.id, id)
}

// SaveMailboxState saves up to which message a mailbox was read.
func (t *Team) SaveMailboxState(ctx context.Context, id dmarcd.MailboxID, uidValidity, lastUID uint32) error {
	return t.changeMailbox(ctx, `UPDATE mailboxes SET uid_validity = $3, last_uid = $4
		WHERE team_id = $1 AND id = $2`, t.id, id, uidValidity, lastUID)
}

// SaveMailboxStatus saves the result of the last poll; problem is "" for success.
func (t *Team) SaveMailboxStatus(ctx context.Context, id dmarcd.MailboxID, problem string) error {
	now := unix(t.store.now())
	if problem == "" {
		return t.changeMailbox(ctx, `UPDATE mailboxes SET seen_at = $3, error = '', error_at = 0
			WHERE team_id = $1 AND id = $2`, t.id, id, now)
	}
	return t.changeMailbox(ctx, `UPDATE mailboxes SET error = $3, error_at = $4
		WHERE team_id = $1 AND id = $2`, t.id, id, problem, now)
}

// CountMailboxCrash counts a panic of the reader, and returns the number since the mailbox was
// added or resumed.
func (t *Team) CountMailboxCrash(ctx context.Context, id dmarcd.MailboxID) (int, error) {
	return inTx(ctx, t.tx, func(tx tx) (int, error) {
		return db.Value[int](db.Row(ctx, tx, `UPDATE mailboxes SET crashes = crashes + 1 WHERE team_id = $1 AND id = $2 RETURNING crashes`, t.id, id))
	})
}

// PauseMailbox stops reading a mailbox until ResumeMailbox. Its reader loses the lease.
func (t *Team) PauseMailbox(ctx context.Context, id dmarcd.MailboxID, reason string) error {
	return t.changeMailbox(ctx, `UPDATE mailboxes SET paused_at = $3, error = $4, error_at = $3
		WHERE team_id = $1 AND id = $2`, t.id, id, unix(t.store.now()), reason)
}

// ResumeMailbox resumes a paused mailbox and resets its crash count.
func (t *Team) ResumeMailbox(ctx context.Context, id dmarcd.MailboxID, audit ...dmarcd.AuditEntry) error {
	return t.change(ctx, audit, `UPDATE mailboxes SET paused_at = 0, crashes = 0, error = '', error_at = 0
		WHERE team_id = $1 AND id = $2`, t.id, id)
}

// SaveMailboxSecret replaces the sealed secret: providers replace refresh tokens.
func (t *Team) SaveMailboxSecret(ctx context.Context, id dmarcd.MailboxID, sealed []byte) error {
	return t.changeMailbox(ctx, `UPDATE mailboxes SET secret = $3
		WHERE team_id = $1 AND id = $2`, t.id, id, sealed)
}

func (t *Team) changeMailbox(ctx context.Context, statement string, args ...any) error {
	changed, err := t.exec(ctx, statement, args...)
	if err == nil && changed == 0 {
		err = dmarcd.ErrNotFound
	}
	return err
}

var mailboxClaim = rowClaim{
	table: "mailboxes", due: "lease_until", where: "paused_at = 0", set: "lease_until = $3", columns: mailboxColumns + ", secret",
}

// ClaimMailboxes leases up to limit mailboxes that are neither leased nor paused, the same number
// of each team, and returns them with their secrets. LeaseUntil identifies the claim for
// RenewMailboxes and ReleaseMailboxes.
func (s *Store) ClaimMailboxes(ctx context.Context, lease time.Duration, limit int) ([]dmarcd.Mailbox, error) {
	teams, err := s.dueTeams(ctx, mailboxClaim)
	if err != nil || len(teams) == 0 {
		return nil, err
	}
	slots := make(map[dmarcd.TeamID]int)
	for _, team := range teams[:min(limit, len(teams))] {
		slots[team] = max(1, limit/len(teams))
	}
	claimed, err := inTx(ctx, s.tx, func(t tx) ([]dmarcd.Mailbox, error) {
		return claimRows(ctx, t, mailboxClaim, s.now().Add(lease), slots, scanClaimedMailbox)
	})
	if err != nil {
		return nil, fmt.Errorf("claim mailboxes: %w", err)
	}
	return claimed, nil
}

func scanClaimedMailbox(scan db.Scanner) (dmarcd.Mailbox, error) {
	var sealed []byte
	m, err := scanMailbox(scan.Before(&sealed))
	m.Secret = sealed
	return m, err
}

// RenewMailboxes extends leases, and returns the mailboxes that this process still holds: they were
// not removed, paused or claimed by another one.
func (s *Store) RenewMailboxes(ctx context.Context, held []dmarcd.Mailbox, lease time.Duration) ([]dmarcd.Mailbox, error) {
	return s.setLeases(ctx, held, s.now().Add(lease))
}

// ReleaseMailboxes ends leases.
func (s *Store) ReleaseMailboxes(ctx context.Context, held []dmarcd.Mailbox) error {
	_, err := s.setLeases(ctx, held, time.Time{})
	return err
}

// setLeases changes the leases of mailboxes that are still held: a lease that another process
// claimed has another end.
func (s *Store) setLeases(ctx context.Context, held []dmarcd.Mailbox, until time.Time) ([]dmarcd.Mailbox, error) {
	if len(held) == 0 {
		return nil, nil
	}
	var renewed []dmarcd.Mailbox
	err := s.tx(ctx, func(t tx) error {
		renewed = nil
		for _, m := range held {
			changed, err := t.Exec(ctx, `UPDATE mailboxes SET lease_until = $1 WHERE team_id = $2 AND id = $3 AND lease_until = $4 AND paused_at = 0`,
				unix(until), m.Team, m.ID, unix(m.LeaseUntil))
			if err != nil {
				return err
			}
			if changed == 1 {
				m.LeaseUntil = until
				renewed = append(renewed, m)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("renew the leases of mailboxes: %w", err)
	}
	return renewed, nil
}

// TeamOfMailbox returns the team of a mailbox, or ErrNotFound: operators name a mailbox by its
// id alone.
func (s *Store) TeamOfMailbox(ctx context.Context, id dmarcd.MailboxID) (dmarcd.TeamID, error) {
	return db.Value[dmarcd.TeamID](db.Row(ctx, s.own(), `SELECT team_id FROM mailboxes WHERE id = $1`, id))
}

// FailingMailboxes returns mailboxes of all teams that could not be read since a time, or
// are paused because of an error.
func (s *Store) FailingMailboxes(ctx context.Context, since time.Time) ([]dmarcd.Mailbox, error) {
	return db.Collect(ctx, s.own(), `SELECT `+strings.TrimSpace(mailboxColumns)+` FROM mailboxes
		WHERE error <> '' AND (paused_at > 0 OR seen_at < $1 AND created_at < $1) ORDER BY team_id, id`, []any{unix(since)}, scanMailbox)
}
