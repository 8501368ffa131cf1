package store

import (
	"context"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
)

const (
	// maxUnfinished is how many checks of a domain in a row may start without finishing (panic
	// or crash) before the schedule skips it.
	maxUnfinished = 3
	// never is the next check of a domain that the schedule skips.
	never = 1 << 40
)

// suspended is the event text for a domain that the schedule skips.
var suspended = fmt.Sprintf("%d checks of this domain began and did not finish, so it is no longer checked on schedule. "+
	"A check on request resumes the schedule if it finishes.", maxUnfinished)

var domainClaim = rowClaim{
	table: "domains", due: "next_check_at", where: "deleted_at = 0",
	set: fmt.Sprintf(`unfinished = unfinished + 1, next_check_at = CASE WHEN unfinished < %d
		THEN CAST($3 AS BIGINT) + 3 * unfinished * (CAST($3 AS BIGINT) - CAST($2 AS BIGINT)) ELSE %d END`, maxUnfinished, int64(never)),
	columns: "team_id, id, name, next_full_at <= $2, unfinished",
}

// DueTeams returns the teams with due domains, in any order.
func (s *Store) DueTeams(ctx context.Context) ([]dmarcd.TeamID, error) {
	return s.dueTeams(ctx, domainClaim)
}

// CheckLag returns how long the check that waits longest has been due, 0 if none is.
func (s *Store) CheckLag(ctx context.Context) (time.Duration, error) {
	now := unix(s.now())
	var since int64
	err := s.own().queryRow(ctx, `SELECT COALESCE(MIN(next_check_at), $1) FROM domains WHERE next_check_at <= $1 AND deleted_at = 0`, []any{now}, &since)
	if err != nil {
		return 0, fmt.Errorf("find the oldest due check: %w", err)
	}
	return time.Duration(now-since) * time.Second, nil
}

// ClaimDueDomains leases due domains of several teams in one transaction: of each team up to
// as many as shares has, the longest waiting first. They are due again after the lease unless a
// check is saved, and later each time. A domain whose checks never finish is suspended, with an
// event.
func (s *Store) ClaimDueDomains(ctx context.Context, lease time.Duration, shares map[dmarcd.TeamID]int) ([]dmarcd.DueDomain, error) {
	now := s.now()
	var due []dmarcd.DueDomain
	err := s.Team(system).retryTx(ctx, func(tx tx) error {
		due = nil
		claimed, err := claimRows(ctx, tx, domainClaim, now.Add(lease), shares, scanClaim)
		if err != nil {
			return err
		}
		for _, c := range claimed {
			if c.unfinished <= maxUnfinished {
				due = append(due, c.DueDomain)
				continue
			}
			s.Team(c.Team).addEvents(tx, c.id, now, dmarcd.Event{Kind: dmarcd.ChecksSuspended, EventData: dmarcd.EventData{Reason: suspended}})
			s.options.Log.WarnContext(ctx, "scheduled checks suspended", "team", c.Team, "domain", c.Name, "unfinished", maxUnfinished)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("claim due domains: %w", err)
	}
	return due, nil
}

type claim struct {
	dmarcd.DueDomain

	id         dmarcd.DomainID
	unfinished int
}

func scanClaim(scan scanner) (claim, error) {
	var c claim
	err := scan(&c.Team, &c.id, &c.Name, &c.Full, &c.unfinished)
	return c, err
}

// CheckEnded records that a claimed check ended without a result, so that it does not count as
// unfinished.
func (t *Team) CheckEnded(ctx context.Context, name string) error {
	_, err := t.exec(ctx, `UPDATE domains SET unfinished = 0 WHERE team_id = $1 AND name = $2 AND deleted_at = 0 AND unfinished > 0`, t.id, name)
	return err
}
