package store

import (
	"context"

	"github.com/dmarcd/dmarcd"
)

// Recipient is a domain whose reports are sent to an address of ours.
type Recipient struct {
	Team   dmarcd.TeamID
	Domain string
}

// RecipientOf returns the domain whose reporting address has that local part, in
// lower case, or ErrNotFound. Whoever delivers a report is a stranger: this is the
// one way from an address to a team.
func (s *Store) RecipientOf(ctx context.Context, mailbox string) (Recipient, error) {
	var r Recipient
	err := s.queryRow(ctx, `SELECT team_id, name FROM domains WHERE report_mailbox = $1 AND deleted_at = 0`,
		[]any{mailbox}, &r.Team, &r.Domain)
	return r, err
}
