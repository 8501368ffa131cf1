package store

import (
	"context"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
)

// DueDomain is a domain whose DNS is to be looked at.
type DueDomain struct {
	Team dmarcd.TeamID
	Name string
	// Full tells that everything is to be looked at, not only DMARC.
	Full bool
}

// ClaimDueDomains returns up to limit domains whose check is due, the longest
// waiting first, and puts their next check off by lease: nobody else claims
// them meanwhile, and if the claimer dies they are due again after it.
func (s *Store) ClaimDueDomains(ctx context.Context, lease time.Duration, limit int) ([]DueDomain, error) {
	now := s.now()
	var due []DueDomain
	err := s.tx(ctx, func(t tx) (err error) {
		due, err = collect(ctx, t, `UPDATE domains SET next_check_at = $1
			WHERE id IN (SELECT id FROM domains WHERE next_check_at <= $2 AND deleted_at = 0
				ORDER BY next_check_at LIMIT $3`+s.dialect.skipLocked+`)
			RETURNING team_id, name, next_full_at <= $2`,
			[]any{unix(now.Add(lease)), unix(now), limit}, scanDueDomain)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("claim due domains: %w", err)
	}
	return due, nil
}

func scanDueDomain(scan scanner) (DueDomain, error) {
	var d DueDomain
	err := scan(&d.Team, &d.Name, &d.Full)
	return d, err
}
