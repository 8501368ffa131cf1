package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// CreateMailedLink stores a link to be mailed. The hash is the SHA-256 of its secret.
func (s *Store) CreateMailedLink(ctx context.Context, hash [32]byte, link dmarcd.MailedLink, audit ...dmarcd.AuditEntry) error {
	return s.audited(ctx, audit, "", func(t tx) error {
		_, err := t.Exec(ctx, `INSERT INTO mailed_links (hash, kind, user_id, email, expires_at) VALUES ($1, $2, $3, $4, $5)`,
			hash[:], link.Kind, link.User, link.Email, unix(link.ExpiresAt))
		if err != nil {
			return fmt.Errorf("create mailed link: %w", err)
		}
		return nil
	})
}

const mailedLinkColumns = `kind, user_id, email, expires_at`

func scanMailedLink(scan db.Scanner) (link dmarcd.MailedLink, err error) {
	var expiresAt int64
	err = scan(&link.Kind, &link.User, &link.Email, &expiresAt)
	link.ExpiresAt = fromUnix(expiresAt)
	return link, err
}

// MailedLink returns the link of a kind with that SHA-256. One that is unknown, used or expired is
// ErrNotFound. It does not use it up.
func (s *Store) MailedLink(ctx context.Context, hash [32]byte, kind dmarcd.LinkKind) (dmarcd.MailedLink, error) {
	return scanMailedLink(db.Row(ctx, s.own(), `SELECT `+mailedLinkColumns+` FROM mailed_links
		WHERE hash = $1 AND kind = $2 AND expires_at > $3`, hash[:], kind, unix(s.now())))
}

// useMailedLink uses up a link, or returns ErrNotFound.
func (t tx) useMailedLink(ctx context.Context, hash [32]byte, kind dmarcd.LinkKind) (dmarcd.MailedLink, error) {
	return scanMailedLink(db.Row(ctx, t, `DELETE FROM mailed_links WHERE hash = $1 AND kind = $2 AND expires_at > $3
		RETURNING `+mailedLinkColumns, hash[:], kind, unix(t.store.now())))
}

// voidLinks removes the links of a kind of a user.
func (t tx) voidLinks(ctx context.Context, user dmarcd.UserID, kind dmarcd.LinkKind) error {
	_, err := t.Exec(ctx, `DELETE FROM mailed_links WHERE user_id = $1 AND kind = $2`, user, kind)
	return err
}

// ResetPassword uses up a link, changes the password of its user, whom the audit entries get as actor
// and target, and ends all their sessions. After an error, as ErrNotFound for a link that cannot be
// used, nothing has changed.
func (s *Store) ResetPassword(ctx context.Context, hash [32]byte, passwordHash string, audit ...dmarcd.AuditEntry) error {
	return s.tx(ctx, func(t tx) error {
		link, err := t.useMailedLink(ctx, hash, dmarcd.LinkPassword)
		if err != nil {
			return err
		}
		if err := t.setPassword(ctx, link.User, passwordHash); err != nil {
			return err
		}
		if err := t.verify(ctx, link.User, link.Email); err != nil {
			return err
		}
		for i := range audit {
			audit[i].User, audit[i].Actor = link.User, link.Email
		}
		t.note(system, link.Email, audit...)
		return nil
	})
}

// ConfirmAddress uses up a link of a user: its address becomes theirs, and is verified. It returns the one before. If
// it changes, all other links of the user become void, all sessions end but the one with the hash except, and no
// mail of teams is sent to the old address any more. One of another user is ErrNotFound, an address that another user has is ErrConflict, and after
// an error nothing has changed.
func (s *Store) ConfirmAddress(ctx context.Context, hash [32]byte, user dmarcd.UserID, except [32]byte, audit ...dmarcd.AuditEntry) (before string, err error) {
	err = s.tx(ctx, func(t tx) error {
		present, err := scanUser(db.Row(ctx, t, `SELECT `+userColumns+` FROM users WHERE id = $1`+s.db.LockRow, user))
		if err != nil {
			return err
		}
		link, err := t.useMailedLink(ctx, hash, dmarcd.LinkAddress)
		if err == nil && link.User != user {
			err = dmarcd.ErrNotFound
		}
		if err != nil {
			return err
		}
		if before = present.Email; before != link.Email {
			if err := t.leaveAddress(ctx, present, link.Email); err != nil {
				return err
			}
			if err := t.endSessions(ctx, user, except); err != nil {
				return err
			}
		}
		if err := t.verify(ctx, user, link.Email); err != nil {
			return err
		}
		t.note(system, link.Email, audit...)
		return nil
	})
	return before, err
}

// leaveAddress prepares a user to have another address.
func (t tx) leaveAddress(ctx context.Context, user dmarcd.User, email string) error {
	_, err := userBy(ctx, t, "email", email)
	if err == nil {
		return dmarcd.ErrConflict
	}
	if !errors.Is(err, dmarcd.ErrNotFound) {
		return err
	}
	teams, err := db.Collect(ctx, t, `SELECT team_id FROM members WHERE user_id = $1 ORDER BY team_id`, []any{user.ID}, db.Value[dmarcd.TeamID])
	if err != nil {
		return err
	}
	for _, team := range teams {
		if err := t.store.Team(team).disableMail(ctx, t, user.ID); err != nil {
			return err
		}
	}
	_, err = t.Exec(ctx, `DELETE FROM mailed_links WHERE user_id = $1`, user.ID)
	return err
}

// browserMemory is how long a browser is known after a sign-in, and maxBrowsers how many are of a user.
const (
	browserMemory = 90 * 24 * time.Hour
	maxBrowsers   = 100
)

// newAccount is how long a user is new: their first browsers are no news.
const newAccount = time.Hour

// SeeBrowser notes that a user signed in with a browser. It returns the user's address, and whether they did not within
// 90 days, which is false for a new user. hash is the SHA-256 of its cookie.
func (s *Store) SeeBrowser(ctx context.Context, id dmarcd.UserID, hash [32]byte) (email string, unseen bool, err error) {
	err = s.tx(ctx, func(t tx) error {
		now := s.now()
		user, err := userBy(ctx, t, "id", id)
		if err != nil {
			return err
		}
		var seenAt int64
		err = t.QueryRow(ctx, `SELECT seen_at FROM browsers WHERE user_id = $1 AND hash = $2`, []any{id, hash[:]}, &seenAt)
		if err != nil && !errors.Is(err, dmarcd.ErrNotFound) {
			return err
		}
		email, unseen = user.Email, fromUnix(seenAt).Before(now.Add(-browserMemory)) && user.CreatedAt.Before(now.Add(-newAccount))
		_, err = t.Exec(ctx, `DELETE FROM browsers WHERE user_id = $1 AND hash IN (SELECT hash FROM browsers WHERE user_id = $1
			ORDER BY seen_at DESC, hash LIMIT $2 OFFSET $2 - 1)`, id, maxBrowsers)
		if err != nil {
			return err
		}
		_, err = t.Exec(ctx, `INSERT INTO browsers (user_id, hash, seen_at) VALUES ($1, $2, $3)
			ON CONFLICT (user_id, hash) DO UPDATE SET seen_at = excluded.seen_at`, id, hash[:], unix(now))
		return err
	})
	return email, unseen, err
}
