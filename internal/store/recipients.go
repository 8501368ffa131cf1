package store

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
)

// Recipient is a domain whose reports are sent to an address of ours.
type Recipient struct {
	Team     dmarcd.TeamID
	Domain   string
	DomainID dmarcd.DomainID
}

// RecipientOf returns the domain whose reporting address has that local part, in
// lower case, or ErrNotFound, as for an address that is retired. The sender of a report
// is an outsider: this is the one way from an address to a team.
func (s *Store) RecipientOf(ctx context.Context, mailbox string) (Recipient, error) {
	var r Recipient
	err := s.queryRow(ctx, `SELECT team_id, name, id FROM domains WHERE report_mailbox = $1 AND deleted_at = 0`,
		[]any{mailbox}, &r.Team, &r.Domain, &r.DomainID)
	return r, err
}

// ActiveMailbox returns what tells whether a reporting address is in use. It says yes
// where the database cannot be asked.
func (s *Store) ActiveMailbox(ctx context.Context) func(mailbox string) bool {
	return func(mailbox string) bool {
		_, err := s.RecipientOf(ctx, mailbox)
		return !errors.Is(err, dmarcd.ErrNotFound)
	}
}

// mailboxRest is how long the reporting address of a deleted domain is retired: a domain
// that is added again within it gets its address back.
const mailboxRest = 90 * 24 * time.Hour

// retireMailbox retires the reporting address of a domain that was just deleted. Its row
// gets a name instead that no address has.
func (t *Team) retireMailbox(ctx context.Context, tx tx, id dmarcd.DomainID) error {
	_, err := tx.exec(ctx, `INSERT INTO retired_mailboxes (team_id, name, mailbox, retired_at)
		SELECT team_id, name, report_mailbox, $3 FROM domains WHERE team_id = $1 AND id = $2
		ON CONFLICT (team_id, name) DO UPDATE SET mailbox = excluded.mailbox, retired_at = excluded.retired_at`,
		t.id, id, unix(t.store.now()))
	if err != nil {
		return err
	}
	_, err = tx.exec(ctx, `UPDATE domains SET report_mailbox = $1 WHERE team_id = $2 AND id = $3`, "deleted "+id.String(), t.id, id)
	return err
}

// mailboxNames is how many names one statement asks about.
const mailboxNames = 50

// retiredMailboxes returns the retired addresses of domains that are added again, by
// their names.
func (t *Team) retiredMailboxes(ctx context.Context, tx tx, names []string) (map[string]string, error) {
	var some bool
	since := unix(t.store.now().Add(-mailboxRest))
	err := tx.queryRow(ctx, `SELECT EXISTS (SELECT 1 FROM retired_mailboxes WHERE team_id = $1)`, []any{t.id}, &some)
	if err != nil || !some {
		return nil, err
	}
	found := make(map[string]string)
	for len(names) > 0 {
		n := min(len(names), mailboxNames)
		args := []any{t.id, since}
		var marks []string
		for _, name := range names[:n] {
			args = append(args, name)
			marks = append(marks, "$"+strconv.Itoa(len(args)))
		}
		_, err := collect(ctx, tx, `SELECT name, mailbox FROM retired_mailboxes WHERE team_id = $1 AND retired_at >= $2
			AND name IN (`+strings.Join(marks, ", ")+`)`, args, func(scan scanner) (none struct{}, err error) {
			var name, mailbox string
			err = scan(&name, &mailbox)
			found[name] = mailbox
			return none, err
		})
		if err != nil {
			return nil, err
		}
		names = names[n:]
	}
	return found, nil
}

// ForgetMailboxes forgets the addresses that have been retired for long enough. It never
// has more to do.
func (s *Store) ForgetMailboxes(ctx context.Context) (more bool, err error) {
	_, err = s.exec(ctx, `DELETE FROM retired_mailboxes WHERE retired_at < $1`, unix(s.now().Add(-mailboxRest)))
	return false, err
}
