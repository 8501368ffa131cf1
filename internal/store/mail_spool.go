package store

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
)

// The spool in the database is shared by all replicas. Each message has a holder, the process
// that handles it. See package spool.

// AddSpooled stores a message of size bytes that this process holds.
func (s *Store) AddSpooled(ctx context.Context, name, charged string, envelope []byte, size int64, content io.Reader) error {
	return s.tx(ctx, func(t tx) error {
		_, err := t.exec(ctx, `INSERT INTO spool (name, holder, crashes, charged, size, envelope) VALUES ($1, $2, 0, $3, $4, $5)`,
			name, s.holder, charged, size, envelope)
		if err != nil {
			return err
		}
		for n := 0; ; n++ {
			chunk, err := nextChunk(content)
			if err != nil || len(chunk) == 0 {
				return err
			}
			if _, err := t.exec(ctx, `INSERT INTO spool_chunks (name, n, content) VALUES ($1, $2, $3)`, name, n, chunk); err != nil {
				return err
			}
		}
	})
}

// CopySpooled writes the content of a message to w. It is ErrNotFound if the message is gone.
func (s *Store) CopySpooled(ctx context.Context, name string, w io.Writer) error {
	return s.tx(ctx, func(t tx) error {
		var rest int64
		if err := t.queryRow(ctx, `SELECT size FROM spool WHERE name = $1`, []any{name}, &rest); err != nil {
			return err
		}
		for n := 0; rest > 0; n++ {
			var chunk []byte
			if err := t.queryRow(ctx, `SELECT content FROM spool_chunks WHERE name = $1 AND n = $2`, []any{name, n}, &chunk); err != nil {
				return err
			}
			if _, err := w.Write(chunk); err != nil {
				return err
			}
			rest -= int64(len(chunk))
		}
		return nil
	})
}

// SetSpooledCrashes sets the number of crashes of messages that this process holds.
func (s *Store) SetSpooledCrashes(ctx context.Context, names []string, crashes int) error {
	list, args := inList([]any{crashes, s.holder}, names)
	_, err := s.exec(ctx, `UPDATE spool SET crashes = $1 WHERE holder = $2 AND name IN `+list, args...)
	return err
}

// RemoveSpooled removes a message, unless another process holds it.
func (s *Store) RemoveSpooled(ctx context.Context, name string) error {
	return s.tx(ctx, func(t tx) error {
		removed, err := t.exec(ctx, `DELETE FROM spool WHERE name = $1 AND holder = $2`, name, s.holder)
		if err != nil || removed == 0 {
			return err
		}
		_, err = t.exec(ctx, `DELETE FROM spool_chunks WHERE name = $1`, name)
		return err
	})
}

// HoldSpool extends the lease of this process on its messages, and ends the leases of others that have
// expired. While its own has expired too, it leaves them: the database was away for all processes.
func (s *Store) HoldSpool(ctx context.Context, lease time.Duration) error {
	now := s.now()
	return s.tx(ctx, func(t tx) error {
		var held bool
		err := t.queryRow(ctx, `SELECT EXISTS (SELECT 1 FROM spool_holders WHERE holder = $1 AND lease_until > $2)`, []any{s.holder, unix(now)}, &held)
		if err != nil {
			return err
		}
		if held {
			if _, err := t.exec(ctx, `DELETE FROM spool_holders WHERE lease_until <= $1`, unix(now)); err != nil {
				return err
			}
		}
		_, err = t.exec(ctx, `INSERT INTO spool_holders (holder, lease_until) VALUES ($1, $2)
			ON CONFLICT (holder) DO UPDATE SET lease_until = excluded.lease_until`, s.holder, unix(now.Add(lease)))
		return err
	})
}

// ClaimSpooled makes this process the holder of up to limit messages that have none, the
// oldest first, and calls add for each. It leaves messages with more than maxCrashes.
func (s *Store) ClaimSpooled(ctx context.Context, maxCrashes, limit int, add func(name string, envelope []byte, size int64, crashes int)) error {
	type message struct {
		name     string
		envelope []byte
		size     int64
		crashes  int
	}
	claimed, err := inTx(ctx, s.tx, func(t tx) ([]message, error) {
		return collect(ctx, t, `UPDATE spool SET holder = $1
			WHERE name`+s.dialect.claimed(`SELECT name FROM spool
				WHERE crashes <= $2 AND NOT EXISTS (SELECT 1 FROM spool_holders WHERE spool_holders.holder = spool.holder)
				ORDER BY name LIMIT $3`)+`
			RETURNING name, envelope, size, crashes`, []any{s.holder, maxCrashes, limit}, func(scan scanner) (m message, err error) {
			err = scan(&m.name, &m.envelope, &m.size, &m.crashes)
			return m, err
		})
	})
	for _, m := range claimed {
		if err == nil {
			add(m.name, m.envelope, m.size, m.crashes)
		}
	}
	return err
}

// OthersSpooled calls add with the number and the size of the messages that this process does
// not hold and that have at most maxCrashes, by what they are charged to.
func (s *Store) OthersSpooled(ctx context.Context, maxCrashes int, add func(charged string, entries int, bytes int64)) error {
	return s.tx(ctx, func(t tx) error {
		return each(ctx, t, `SELECT charged, COUNT(*), CAST(SUM(size) AS BIGINT) FROM spool WHERE holder <> $1 AND crashes <= $2 GROUP BY charged`,
			[]any{s.holder, maxCrashes}, func(scan scanner) error {
				var (
					charged string
					entries int
					bytes   int64
				)
				err := scan(&charged, &entries, &bytes)
				if err == nil {
					add(charged, entries, bytes)
				}
				return err
			})
	})
}

// LeaveSpool gives up the messages that this process holds, so that others claim them at once.
func (s *Store) LeaveSpool(ctx context.Context) error {
	return s.tx(ctx, func(t tx) error {
		if _, err := t.exec(ctx, `UPDATE spool SET holder = 0 WHERE holder = $1`, s.holder); err != nil {
			return err
		}
		_, err := t.exec(ctx, `DELETE FROM spool_holders WHERE holder = $1`, s.holder)
		return err
	})
}

// Recipient is the domain of a reporting address.
type Recipient struct {
	Team     dmarcd.TeamID
	Domain   string
	DomainID dmarcd.DomainID
}

// RecipientOf returns the domain of a local part in lower case, or ErrNotFound, also for a
// retired address. It is the only way from an address to a team.
func (s *Store) RecipientOf(ctx context.Context, mailbox string) (Recipient, error) {
	if !dmarcd.IsReportMailbox(mailbox) {
		return Recipient{}, dmarcd.ErrNotFound
	}
	var r Recipient
	err := s.own().queryRow(ctx, `SELECT team_id, name, domain_id FROM addresses WHERE mailbox = $1 AND retired_at = 0`,
		[]any{mailbox}, &r.Team, &r.Domain, &r.DomainID)
	return r, err
}

// ActiveMailbox returns a function that reports whether a reporting address is in use. It
// reports true if the database is unavailable.
func (s *Store) ActiveMailbox(ctx context.Context) func(mailbox string) bool {
	return func(mailbox string) bool {
		_, err := s.RecipientOf(ctx, mailbox)
		return !errors.Is(err, dmarcd.ErrNotFound)
	}
}

// mailboxRest is how long the address of a deleted domain is retired. A domain that is added
// again in this time gets its address back.
const mailboxRest = 90 * 24 * time.Hour

// retireMailbox retires the address of a domain that is being deleted. The address now belongs
// to a name, not to a row.
func (t *Team) retireMailbox(ctx context.Context, tx tx, name string) error {
	_, err := tx.exec(ctx, `UPDATE addresses SET retired_at = $1, domain_id = 0 WHERE team_id = $2 AND name = $3`, unix(t.store.now()), t.id, name)
	return err
}

// assignMailboxes stores the addresses of added domains: mailbox, team, name and id of the
// domain.
func (t *Team) assignMailboxes(ctx context.Context, tx tx, rows [][]any) error {
	_, err := tx.insertMany(ctx, `INSERT INTO addresses (mailbox, team_id, name, domain_id) VALUES `, rows,
		` ON CONFLICT (team_id, name) DO UPDATE SET mailbox = excluded.mailbox, domain_id = excluded.domain_id, retired_at = 0`)
	return err
}

// mailboxNames is the number of names per query.
const mailboxNames = 50

// address is the address of a present or deleted domain.
type address struct {
	name, mailbox string
	retiredAt     int64
}

// addresses returns the addresses of present and deleted domains by name.
func (t *Team) addresses(ctx context.Context, tx tx, names []string) (map[string]address, error) {
	found := make(map[string]address)
	for some := range slices.Chunk(names, mailboxNames) {
		list, args := inList([]any{t.id}, some)
		err := each(ctx, tx, `SELECT name, mailbox, retired_at FROM addresses WHERE team_id = $1 AND name IN `+list, args, func(scan scanner) error {
			var a address
			err := scan(&a.name, &a.mailbox, &a.retiredAt)
			found[a.name] = a
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// ForgetMailboxes removes addresses after their retirement. It never has more to do.
func (s *Store) ForgetMailboxes(ctx context.Context) (more bool, err error) {
	_, err = s.exec(ctx, `DELETE FROM addresses WHERE retired_at > 0 AND retired_at < $1`, unix(s.now().Add(-mailboxRest)))
	return false, err
}
