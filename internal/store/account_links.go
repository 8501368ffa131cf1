package store

import (
	"context"
	"fmt"

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
		for i := range audit {
			audit[i].User, audit[i].Actor = link.User, link.Email
		}
		return t.noteAll(ctx, system, audit, link.Email)
	})
}
