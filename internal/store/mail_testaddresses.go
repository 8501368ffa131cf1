package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/shape"
)

// TestAddress returns the test address of a user, and creates one if there is none or it has
// expired. User 0 stands for all tokens.
func (t *Team) TestAddress(ctx context.Context, user dmarcd.UserID) (address dmarcd.TestAddress, err error) {
	now := t.store.now()
	found := func() error {
		var expires int64
		var mails string
		err := t.store.own().QueryRow(ctx, `SELECT mailbox, expires_at, mails FROM test_addresses WHERE team_id = $1 AND user_id = $2 AND expires_at > $3`,
			[]any{t.id, user, unix(now)}, &address.Mailbox, &expires, &mails)
		if err != nil {
			return err
		}
		address.ExpiresAt = fromUnix(expires)
		address.Mails, err = shape.DecodeTestMails(mails)
		return err
	}
	if err := found(); !errors.Is(err, dmarcd.ErrNotFound) {
		return address, err
	}
	_, err = t.exec(ctx, `INSERT INTO test_addresses (mailbox, team_id, user_id, expires_at, received, mails) VALUES ($1, $2, $3, $4, 0, $5)
		ON CONFLICT (team_id, user_id) DO UPDATE SET mailbox = excluded.mailbox, expires_at = excluded.expires_at, received = 0, mails = excluded.mails
		WHERE test_addresses.expires_at <= $6`,
		dmarcd.NewTestMailbox(rand.Text()), t.id, user, unix(now.Add(dmarcd.TestAddressLife)), shape.EncodeTestMails(nil), unix(now))
	if err != nil {
		return address, fmt.Errorf("create a test address: %w", err)
	}
	return address, found()
}

// TestRecipient returns the team of a test address by its local part in lower case. It is
// ErrNotFound if the address does not exist any more, and ErrLimit if it has received its mails.
func (s *Store) TestRecipient(ctx context.Context, mailbox string) (team dmarcd.TeamID, err error) {
	if !dmarcd.IsTestMailbox(mailbox) {
		return 0, dmarcd.ErrNotFound
	}
	var received int
	err = s.own().QueryRow(ctx, `SELECT team_id, received FROM test_addresses WHERE mailbox = $1 AND expires_at > $2`, []any{mailbox, unix(s.now())}, &team, &received)
	if err == nil && received >= dmarcd.MaxTestMails {
		err = dmarcd.ErrLimit
	}
	return team, err
}

// AddTestMail adds a result to a test address of the team. It is repeatable. Without the address
// it is ErrNotFound, with MaxTestMails results ErrLimit.
func (t *Team) AddTestMail(ctx context.Context, mailbox string, mail dmarcd.TestMail) error {
	return t.tx(ctx, func(tx tx) error {
		var stored string
		// An update locks the row on both engines.
		err := tx.QueryRow(ctx, `UPDATE test_addresses SET received = received WHERE team_id = $1 AND mailbox = $2 AND expires_at > $3 RETURNING mails`,
			[]any{t.id, mailbox, unix(t.store.now())}, &stored)
		if err != nil {
			return err
		}
		mails, err := shape.DecodeTestMails(stored)
		switch {
		case err != nil:
			return err
		case slices.ContainsFunc(mails, func(m dmarcd.TestMail) bool { return m.ID == mail.ID }):
			return nil
		case len(mails) >= dmarcd.MaxTestMails:
			return dmarcd.ErrLimit
		}
		mails = append([]dmarcd.TestMail{mail}, mails...)
		_, err = tx.Exec(ctx, `UPDATE test_addresses SET received = $1, mails = $2 WHERE team_id = $3 AND mailbox = $4`,
			len(mails), shape.EncodeTestMails(mails), t.id, mailbox)
		return err
	})
}

// PurgeTestAddresses removes some expired test addresses with their results, and reports whether
// there may be more.
func (s *Store) PurgeTestAddresses(ctx context.Context) (more bool, err error) {
	removed, err := s.exec(ctx, `DELETE FROM test_addresses WHERE mailbox IN (SELECT mailbox FROM test_addresses WHERE expires_at <= $1 LIMIT $2)`,
		unix(s.now()), purgeRows)
	return removed == purgeRows, err
}
