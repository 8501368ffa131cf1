package store

import (
	"context"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
)

var mailboxClaim = rowClaim{
	table: "mailboxes", due: "lease_until", where: "paused_at = 0", set: "lease_until = $3", columns: mailboxColumns + ", secret",
}

// ClaimMailboxes leases up to limit mailboxes that no process reads and that are not paused,
// as many of each team, and returns them with their secrets; none if there are no more.
// LeaseUntil identifies the claim for RenewMailboxes and ReleaseMailboxes.
func (s *Store) ClaimMailboxes(ctx context.Context, lease time.Duration, limit int) ([]dmarcd.Mailbox, error) {
	teams, err := s.dueTeams(ctx, mailboxClaim)
	if err != nil || len(teams) == 0 {
		return nil, err
	}
	shares := make(map[dmarcd.TeamID]int)
	for _, team := range teams[:min(limit, len(teams))] {
		shares[team] = max(1, limit/len(teams))
	}
	claimed, err := inTx(ctx, s.tx, func(t tx) ([]dmarcd.Mailbox, error) {
		return claimRows(ctx, t, mailboxClaim, s.now().Add(lease), shares, scanClaimedMailbox)
	})
	if err != nil {
		return nil, fmt.Errorf("claim mailboxes: %w", err)
	}
	return claimed, nil
}

func scanClaimedMailbox(scan scanner) (dmarcd.Mailbox, error) {
	var sealed []byte
	m, err := scanMailbox(scan.before(&sealed))
	m.Secret = sealed
	return m, err
}

// RenewMailboxes extends leases, and returns the mailboxes that are still held: not those that
// were removed, paused or claimed by another process.
func (s *Store) RenewMailboxes(ctx context.Context, held []dmarcd.Mailbox, lease time.Duration) ([]dmarcd.Mailbox, error) {
	return s.setLeases(ctx, held, s.now().Add(lease))
}

// ReleaseMailboxes ends leases.
func (s *Store) ReleaseMailboxes(ctx context.Context, held []dmarcd.Mailbox) error {
	_, err := s.setLeases(ctx, held, time.Time{})
	return err
}

// setLeases changes the leases of mailboxes that are still held. A lease that another process
// has claimed has another time.
func (s *Store) setLeases(ctx context.Context, held []dmarcd.Mailbox, until time.Time) ([]dmarcd.Mailbox, error) {
	if len(held) == 0 {
		return nil, nil
	}
	var kept []dmarcd.Mailbox
	err := s.tx(ctx, func(t tx) error {
		kept = nil
		for _, m := range held {
			changed, err := t.exec(ctx, `UPDATE mailboxes SET lease_until = $1 WHERE team_id = $2 AND id = $3 AND lease_until = $4 AND paused_at = 0`,
				unix(until), m.Team, m.ID, unix(m.LeaseUntil))
			if err != nil {
				return err
			}
			if changed == 1 {
				m.LeaseUntil = until
				kept = append(kept, m)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("renew the leases of mailboxes: %w", err)
	}
	return kept, nil
}

// TeamOfMailbox returns the team of a mailbox, or ErrNotFound: operators name a mailbox by its
// id alone.
func (s *Store) TeamOfMailbox(ctx context.Context, id dmarcd.MailboxID) (dmarcd.TeamID, error) {
	return scanValue[dmarcd.TeamID](rowOf(ctx, s.own(), `SELECT team_id FROM mailboxes WHERE id = $1`, id))
}
