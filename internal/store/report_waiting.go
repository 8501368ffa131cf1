package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// maxClaimed limits the shares that a transaction claims: it holds the team's lock, and on SQLite
// all writers wait for it.
const maxClaimed = 5_000

// claimAdded assigns waiting shares to domains that were just added, and counts them. It reports
// whether claimRest has to assign more.
func (t *Team) claimAdded(ctx context.Context, tx tx, domains []owner) (rest bool, err error) {
	var awaited []owner
	for _, domain := range domains {
		path := pathOf(domain.name)
		var waits bool
		err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM shares WHERE team_id = $1 AND domain_id = 0 AND from_path >= $2 AND from_path < $3)
				OR EXISTS (SELECT 1 FROM shares WHERE team_id = $1 AND domain_id = 0 AND policy_path >= $2 AND policy_path < $3)`,
			[]any{t.id, path, afterPath(path)}, &waits)
		if err != nil {
			return false, err
		}
		if waits {
			awaited = append(awaited, domain)
		}
	}
	if len(awaited) == 0 {
		return false, nil
	}
	done, err := t.claim(ctx, tx, awaited, maxClaimed)
	if err != nil || done {
		return false, err
	}
	for _, domain := range awaited {
		if _, err := tx.Exec(ctx, `UPDATE domains SET claiming = TRUE WHERE team_id = $1 AND id = $2`, t.id, domain.id); err != nil {
			return false, err
		}
	}
	return true, nil
}

// claimRest assigns the waiting shares that claimAdded left, in short transactions. After an error
// ClaimShares assigns the rest.
func (t *Team) claimRest(ctx context.Context) {
	for {
		if more, err := t.claimStep(ctx); err != nil || !more {
			return
		}
	}
}

// ClaimShares assigns some of the waiting shares that an interrupted addition of domains left, and
// reports whether there may be more. Errors of one team do not affect others, see eachTeam.
func (s *Store) ClaimShares(ctx context.Context) (more bool, err error) {
	return s.eachTeam(ctx, "claims of waiting reports", func(t *Team) (bool, error) { return t.claimStep(ctx) },
		`SELECT DISTINCT team_id FROM domains WHERE claiming`)
}

func (t *Team) claimStep(ctx context.Context) (more bool, err error) {
	return inTx(ctx, t.retryTx, func(tx tx) (bool, error) { return t.claimMore(ctx, tx) })
}

func (t *Team) claimMore(ctx context.Context, tx tx) (more bool, err error) {
	if err := t.lock(ctx, tx); err != nil {
		return false, err
	}
	// A domain must not be deleted meanwhile.
	domains, err := db.Collect(ctx, tx, `SELECT id, name FROM domains WHERE team_id = $1 AND claiming AND deleted_at = 0 ORDER BY id`+t.store.db.LockRow,
		[]any{t.id}, scanOwner)
	if err != nil {
		return false, err
	}
	done, err := t.claim(ctx, tx, domains, maxClaimed)
	if err == nil && done {
		_, err = tx.Exec(ctx, `UPDATE domains SET claiming = FALSE WHERE team_id = $1 AND claiming`, t.id)
	}
	return !done, err
}

// claim assigns up to limit waiting shares to domains, by From domain first, then by policy domain,
// and reports whether none is left.
func (t *Team) claim(ctx context.Context, tx tx, domains []owner, limit int) (done bool, err error) {
	// Longer names first: they are the nearer parents.
	slices.SortStableFunc(domains, func(a, b owner) int { return strings.Count(b.name, ".") - strings.Count(a.name, ".") })
	changes := make(tally)
	for _, column := range []string{"from_path", "policy_path"} {
		for _, domain := range domains {
			if limit == 0 {
				break
			}
			path := pathOf(domain.name)
			waiting, err := db.Collect(ctx, tx, `SELECT report_id, n FROM shares WHERE team_id = $1 AND domain_id = 0 AND `+column+` >= $2 AND `+column+` < $3
				ORDER BY `+column+` LIMIT $4`, []any{t.id, path, afterPath(path), limit}, scanShareRef)
			if err != nil {
				return false, err
			}
			limit -= len(waiting)
			for some := range slices.Chunk(waiting, 45) {
				if err := t.claimShares(ctx, tx, domain, some, changes); err != nil {
					return false, err
				}
			}
		}
	}
	return limit > 0, t.count(ctx, tx, changes) // the domains are locked or new
}

// claimShares assigns shares to a domain. It lists their keys: PostgreSQL plans a subquery badly
// while the statistics lack new rows.
func (t *Team) claimShares(ctx context.Context, tx tx, domain owner, shares []shareRef, changes tally) error {
	args := []any{domain.id, t.id}
	var keys []string
	for _, share := range shares {
		args = append(args, share.report, share.n)
		keys = append(keys, fmt.Sprintf("report_id = $%d AND n = $%d", len(args)-1, len(args)))
	}
	return tx.Query(ctx, `UPDATE shares SET domain_id = $1 WHERE team_id = $2 AND (`+strings.Join(keys, ` OR `)+`)
		RETURNING (SELECT reports.state FROM reports WHERE reports.team_id = $2 AND reports.id = shares.report_id), domain_id, day, `+countColumns,
		args, changes.claim)
}

// claim counts a claimed share if its report counts.
func (t tally) claim(scan db.Scanner) error {
	var state dmarcd.ReportState
	c, err := scanCounted(scan.After(&state))
	if err == nil && state == dmarcd.ReportCounted {
		t.add(c.tallyKey, c.counts, 0)
	}
	return err
}

// SwitchProof applies Options.DomainProof to the domains that were checked under the other setting:
// they need a proof from their next check on, or none any more, so that what waits for it is claimed.
func (s *Store) SwitchProof(ctx context.Context) error {
	change := `UPDATE domains SET proof = '', claiming = TRUE WHERE proof <> ''`
	if s.options.DomainProof {
		change = `UPDATE domains SET proof = 'missing' WHERE proof = '' AND sample = FALSE`
	}
	if _, err := s.exec(ctx, change); err != nil {
		return fmt.Errorf("switch the proof of domains: %w", err)
	}
	return nil
}
