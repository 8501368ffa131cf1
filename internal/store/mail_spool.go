package store

import (
	"context"
	"io"
	"time"

	"github.com/dmarcd/dmarcd/internal/store/db"
)

// The spool in the database is shared by all replicas. Each message has a holder, the process
// that handles it. See package spool.

// AddSpooled stores a message of size bytes that this process holds.
func (s *Store) AddSpooled(ctx context.Context, name, charged string, envelope []byte, size int64, content io.Reader) error {
	return s.tx(ctx, func(t tx) error {
		_, err := t.Exec(ctx, `INSERT INTO spool (name, holder, crashes, charged, size, envelope) VALUES ($1, $2, 0, $3, $4, $5)`,
			name, s.holder, charged, size, envelope)
		if err != nil {
			return err
		}
		for n := 0; ; n++ {
			chunk, err := nextChunk(content)
			if err != nil || len(chunk) == 0 {
				return err
			}
			if _, err := t.Exec(ctx, `INSERT INTO spool_chunks (name, n, content) VALUES ($1, $2, $3)`, name, n, chunk); err != nil {
				return err
			}
		}
	})
}

// CopySpooled writes the content of a message to w. It is ErrNotFound if the message is gone.
func (s *Store) CopySpooled(ctx context.Context, name string, w io.Writer) error {
	return s.tx(ctx, func(t tx) error {
		var rest int64
		if err := t.QueryRow(ctx, `SELECT size FROM spool WHERE name = $1`, []any{name}, &rest); err != nil {
			return err
		}
		for n := 0; rest > 0; n++ {
			var chunk []byte
			if err := t.QueryRow(ctx, `SELECT content FROM spool_chunks WHERE name = $1 AND n = $2`, []any{name, n}, &chunk); err != nil {
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
	list, args := db.In([]any{crashes, s.holder}, names)
	_, err := s.exec(ctx, `UPDATE spool SET crashes = $1 WHERE holder = $2 AND name IN `+list, args...)
	return err
}

// RemoveSpooled removes a message, unless another process holds it.
func (s *Store) RemoveSpooled(ctx context.Context, name string) error {
	return s.tx(ctx, func(t tx) error {
		removed, err := t.Exec(ctx, `DELETE FROM spool WHERE name = $1 AND holder = $2`, name, s.holder)
		if err != nil || removed == 0 {
			return err
		}
		_, err = t.Exec(ctx, `DELETE FROM spool_chunks WHERE name = $1`, name)
		return err
	})
}

// HoldSpool extends the lease of this process on its messages, and ends expired leases of others,
// unless its own had expired too: then the database was unavailable to all processes.
func (s *Store) HoldSpool(ctx context.Context, lease time.Duration) error {
	now := s.now()
	return s.tx(ctx, func(t tx) error {
		var held bool
		err := t.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM spool_holders WHERE holder = $1 AND lease_until > $2)`, []any{s.holder, unix(now)}, &held)
		if err != nil {
			return err
		}
		if held {
			if _, err := t.Exec(ctx, `DELETE FROM spool_holders WHERE lease_until <= $1`, unix(now)); err != nil {
				return err
			}
		}
		_, err = t.Exec(ctx, `INSERT INTO spool_holders (holder, lease_until) VALUES ($1, $2)
			ON CONFLICT (holder) DO UPDATE SET lease_until = excluded.lease_until`, s.holder, unix(now.Add(lease)))
		return err
	})
}

// ClaimSpooled makes this process the holder of up to limit messages without one, oldest first, and
// calls add for each. It skips messages with more than maxCrashes crashes.
func (s *Store) ClaimSpooled(ctx context.Context, maxCrashes, limit int, add func(name string, envelope []byte, size int64, crashes int)) error {
	type message struct {
		name     string
		envelope []byte
		size     int64
		crashes  int
	}
	claimed, err := inTx(ctx, s.tx, func(t tx) ([]message, error) {
		return db.Collect(ctx, t, `UPDATE spool SET holder = $1
			WHERE name`+s.db.Claimed(`SELECT name FROM spool
				WHERE crashes <= $2 AND NOT EXISTS (SELECT 1 FROM spool_holders WHERE spool_holders.holder = spool.holder)
				ORDER BY name LIMIT $3`)+`
			RETURNING name, envelope, size, crashes`, []any{s.holder, maxCrashes, limit}, func(scan db.Scanner) (m message, err error) {
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

// OthersSpooled calls add with the number and the total size of the messages that this process does
// not hold and that crashed at most maxCrashes times, grouped by what they are charged to.
func (s *Store) OthersSpooled(ctx context.Context, maxCrashes int, add func(charged string, entries int, bytes int64)) error {
	return s.tx(ctx, func(t tx) error {
		return t.Query(ctx, `SELECT charged, COUNT(*), CAST(SUM(size) AS BIGINT) FROM spool WHERE holder <> $1 AND crashes <= $2 GROUP BY charged`,
			[]any{s.holder, maxCrashes}, func(scan db.Scanner) error {
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

// LeaveSpool releases the messages that this process holds, so that others can claim them at once.
func (s *Store) LeaveSpool(ctx context.Context) error {
	return s.tx(ctx, func(t tx) error {
		if _, err := t.Exec(ctx, `UPDATE spool SET holder = 0 WHERE holder = $1`, s.holder); err != nil {
			return err
		}
		_, err := t.Exec(ctx, `DELETE FROM spool_holders WHERE holder = $1`, s.holder)
		return err
	})
}
