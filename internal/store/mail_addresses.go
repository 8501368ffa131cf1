package store

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// Recipient is the domain of a reporting address.
type Recipient struct {
	Team     dmarcd.TeamID
	Domain   string
	DomainID dmarcd.DomainID
}

// RecipientOf returns the domain of a local part in lower case, or ErrNotFound, also for a
// retired address and that of a deleted team. It is the only way from an address to a team.
func (s *Store) RecipientOf(ctx context.Context, mailbox string) (Recipient, error) {
	if !dmarcd.IsReportMailbox(mailbox) {
		return Recipient{}, dmarcd.ErrNotFound
	}
	var r Recipient
	err := s.own().QueryRow(ctx, `SELECT addresses.team_id, addresses.name, addresses.domain_id FROM addresses
		JOIN teams ON teams.id = addresses.team_id WHERE addresses.mailbox = $1 AND addresses.retired_at = 0 AND teams.deleted_at = 0`,
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

// newMailbox returns the local part of a reporting address. It must not be guessable:
// outsiders who know it can send reports.
func newMailbox() string { return strings.ToLower(rand.Text()) }

// mailboxRest is how long the address of a deleted domain stays retired. A domain that is added
// again within this time gets its address back.
const mailboxRest = 90 * 24 * time.Hour

// retireMailbox retires the address of a domain that is being deleted. The address now belongs
// to a name, not to a row.
func (t *Team) retireMailbox(ctx context.Context, tx tx, name string) error {
	_, err := tx.Exec(ctx, `UPDATE addresses SET retired_at = $1, domain_id = 0 WHERE team_id = $2 AND name = $3`, unix(t.store.now()), t.id, name)
	return err
}

// assignMailboxes stores the addresses of added domains: mailbox, team, name and id of the
// domain.
func (t *Team) assignMailboxes(ctx context.Context, tx tx, rows [][]any) error {
	_, err := tx.InsertMany(ctx, `INSERT INTO addresses (mailbox, team_id, name, domain_id) VALUES `, rows,
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
		list, args := db.In([]any{t.id}, some)
		err := tx.Query(ctx, `SELECT name, mailbox, retired_at FROM addresses WHERE team_id = $1 AND name IN `+list, args, func(scan db.Scanner) error {
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
