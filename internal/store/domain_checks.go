package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

const (
	// doubtFor is the delay before an unexpected change is checked again.
	doubtFor = time.Minute
	// fullDelay is the delay of the full check after a change or a check on request: users
	// often check several times in a row.
	fullDelay = 5 * time.Second
	// fullGrace limits full checks caused by requests to one per minute.
	fullGrace = time.Minute
)

// SaveCheck saves a check. If it is conclusive and confirmed, it updates the domain's fields
// and adds events for the changes, in one transaction. It returns the updated domain, or
// ErrNotFound if it was deleted.
//
// A check on request is confirmed at once. A change seen by the schedule is confirmed if no
// cache can hold the old answer, or if a second check a minute later agrees. A check that is
// older than the last saved one is dropped.
//
// A conclusive check with facts is also added to the history, as a new entry or, without
// changes, as a later time of the last one. New and resolved errors become events. They need
// no confirmation: full checks are a day apart, longer than caches live, or follow a confirmed
// change.
func (t *Team) SaveCheck(ctx context.Context, name string, check facts.Check, plan dmarcd.Plan) (dmarcd.Domain, error) {
	domain, err := t.confirmCheck(ctx, name, check, plan)
	if err == nil {
		return domain, nil
	}
	if !errors.Is(err, dmarcd.ErrNotFound) {
		return dmarcd.Domain{}, fmt.Errorf("save check: %w", err)
	}
	var proven bool
	err = t.tx(ctx, func(tx tx) error {
		row, err := t.checkedDomain(ctx, tx, name)
		domain = row.Domain
		if err != nil {
			return err
		}
		// A time in the future came from a wrong clock; it must not block new checks.
		if check.At.Before(domain.CheckedAt) && !domain.CheckedAt.After(t.store.now()) {
			_, err := tx.Exec(ctx, `UPDATE domains SET unfinished = 0 WHERE team_id = $1 AND id = $2`, t.id, domain.ID)
			return err
		}
		row.CheckedAt = check.At.UTC().Truncate(time.Second)
		if err := t.apply(ctx, tx, &row, check, plan); err != nil {
			return err
		}
		if check.Facts != nil && check.Conclusive {
			if err := t.saveEntry(ctx, tx, &row, check, plan); err != nil {
				return err
			}
		}
		proven = domain.Proof == dmarcd.ProofMissing && row.Proof != dmarcd.ProofMissing
		domain = row.Domain
		return t.updateChecked(ctx, tx, row, proven)
	})
	if err != nil {
		return dmarcd.Domain{}, fmt.Errorf("save check: %w", err)
	}
	if proven {
		t.claimRest(ctx)
	}
	return domain, nil
}

// confirmCheck saves, in one statement, a check of the DMARC record that found what is already
// known, as most do. It returns ErrNotFound, and changes nothing, if there is more to save.
func (t *Team) confirmCheck(ctx context.Context, name string, check facts.Check, plan dmarcd.Plan) (dmarcd.Domain, error) {
	// Its own reporting address in the record makes the domain active. The owners of other
	// addresses are in another table.
	active, mailbox := check.Usable, ""
	if check.Usable && check.NeedsMailbox {
		if active = len(check.Mailboxes) > 0; active {
			mailbox = check.Mailboxes[0]
		}
	}
	if check.Proof == dmarcd.ProofMissing {
		active, mailbox = false, ""
	}
	if !check.Conclusive || check.Facts != nil || len(check.Mailboxes) > 1 {
		return dmarcd.Domain{}, dmarcd.ErrNotFound
	}
	at, fullBy := unix(check.At), int64(never)
	if check.Asked {
		fullBy = unix(t.store.now().Add(fullDelay))
	}
	// As in apply: a full check follows a check on request.
	const nextFull = `CASE WHEN next_full_at <= $11 OR next_full_at <= full_at + $12 THEN next_full_at
				WHEN full_at + $12 > $11 THEN full_at + $12 ELSE $11 END`
	return scanDomain(func(dest ...any) error {
		return t.execRow(ctx, `UPDATE domains SET checked_at = $3, known_at = $3, known_until = $4, failures = 0, reason = '', doubted = '', unfinished = 0,
				next_full_at = `+nextFull+`, next_check_at = CASE WHEN `+nextFull+` < $5 THEN `+nextFull+` ELSE $5 END
			WHERE team_id = $1 AND name = $2 AND deleted_at = 0 AND sample = FALSE AND checked_at <= $3
				AND active = $6 AND record = $7 AND policy = $8 AND record_domain = $9 AND ($10 = '' OR report_mailbox = $10) AND proof = $13
			RETURNING `+domainColumns, []any{
			t.id, name, at, at + int64(check.TTL/time.Second), unix(plan.Next), active, check.Record, check.Policy, check.RecordDomain,
			mailbox, fullBy, int64(fullGrace / time.Second), check.Proof,
		}, dest...)
	})
}

// checkedDomain is a domain with its check state.
type checkedDomain struct {
	dmarcd.Domain
	knownUntil  time.Time
	failures    int
	reason      string
	doubted     string
	fullAt      time.Time
	nextFullAt  time.Time
	nextCheckAt time.Time
}

func (t *Team) checkedDomain(ctx context.Context, tx tx, name string) (checkedDomain, error) {
	var row checkedDomain
	var knownUntil, fullAt, nextFullAt, nextCheckAt int64
	domain, err := scanDomain(db.Row(ctx, tx, `SELECT `+domainColumns+`, known_until, failures, reason, doubted, full_at, next_full_at, next_check_at
		FROM domains WHERE team_id = $1 AND name = $2 AND deleted_at = 0`+t.store.db.LockRow, t.id, name).
		Before(&knownUntil, &row.failures, &row.reason, &row.doubted, &fullAt, &nextFullAt, &nextCheckAt))
	row.Domain, row.knownUntil, row.fullAt = domain, fromUnix(knownUntil), fromUnix(fullAt)
	row.nextFullAt, row.nextCheckAt = fromUnix(nextFullAt), fromUnix(nextCheckAt)
	return row, err
}

// updateChecked saves a domain after a check. If the check proved it, waiting shares are claimed next.
func (t *Team) updateChecked(ctx context.Context, tx tx, row checkedDomain, proven bool) error {
	if row.nextFullAt.Before(row.nextCheckAt) {
		row.nextCheckAt = row.nextFullAt
	}
	if row.Sample {
		row.nextFullAt, row.nextCheckAt = fromUnix(never), fromUnix(never)
	}
	_, err := tx.Exec(ctx, `UPDATE domains SET
			active = $1, record = $2, policy = $3, updated_at = $4, grade = $5, checked_at = $6, known_at = $7, known_until = $8,
			failures = $9, reason = $10, doubted = $11, full_at = $12, next_full_at = $13, next_check_at = $14, record_domain = $15,
			unfinished = 0, proof = $18, claiming = CASE WHEN $19 = TRUE THEN TRUE ELSE claiming END
		WHERE team_id = $16 AND id = $17`,
		row.Active, row.Record, row.Policy, unix(row.UpdatedAt), row.Grade, unix(row.CheckedAt), unix(row.KnownAt), unix(row.knownUntil),
		row.failures, row.reason, row.doubted, unix(row.fullAt), unix(row.nextFullAt), unix(row.nextCheckAt), row.RecordDomain,
		t.id, row.ID, row.Proof, proven)
	return err
}

// apply applies the confirmed DMARC result of a check to a domain, and plans the next check.
func (t *Team) apply(ctx context.Context, tx tx, row *checkedDomain, check facts.Check, plan dmarcd.Plan) error {
	now := t.store.now()
	if !check.Conclusive {
		row.failures++
		row.reason = check.Reason
		row.nextCheckAt = now.Add(plan.After(row.failures))
		if row.nextFullAt.Before(row.nextCheckAt) {
			row.nextFullAt = row.nextCheckAt // the DNS would not answer that either
		}
		return nil
	}
	row.failures, row.reason = 0, ""
	row.nextCheckAt = plan.Next

	seen, err := t.seen(ctx, tx, row.Domain, check)
	if err != nil {
		return err
	}
	change := fmt.Sprintf("%t %s %s%s", seen.Active, seen.Policy, seen.Record, seen.Proof)
	changed := seen != row.Domain
	believed := check.Asked || row.KnownAt.IsZero() || !check.At.Before(row.knownUntil) || row.doubted == change
	if changed && !believed {
		row.doubted = change
		row.nextCheckAt = now.Add(doubtFor)
		return nil
	}
	row.doubted = ""
	if changed {
		if !row.KnownAt.IsZero() {
			t.addEvents(tx, row.ID, row.CheckedAt, dmarcd.RecordEvents(row.Domain, seen)...)
		}
		proof := seen.Proof
		if seen.Proof = row.Proof; seen != row.Domain { // the proof alone is not a change for clients of the domain
			seen.UpdatedAt = now
		}
		seen.Proof = proof
	}
	if changed || check.Asked {
		due := now.Add(fullDelay)
		if again := row.fullAt.Add(fullGrace); again.After(due) {
			due = again
		}
		if due.Before(row.nextFullAt) {
			row.nextFullAt = due
		}
	}
	row.Domain = seen
	row.RecordDomain = check.RecordDomain // internal only: not a change for clients
	row.KnownAt = row.CheckedAt
	row.knownUntil = row.CheckedAt.Add(check.TTL)
	return nil
}

// seen returns the domain with the result of the check.
func (t *Team) seen(ctx context.Context, tx tx, domain dmarcd.Domain, check facts.Check) (dmarcd.Domain, error) {
	if domain.Proof != "" && check.Proof != "" {
		domain.Proof = check.Proof
	}
	domain.Record, domain.Policy, domain.Active = check.Record, check.Policy, check.Usable && domain.Proof != dmarcd.ProofMissing
	if !domain.Active || !check.NeedsMailbox {
		return domain, nil
	}
	var err error
	domain.Active, err = t.receivesAt(ctx, tx, check.Mailboxes, domain.Name)
	return domain, err
}

// receivesAt reports whether one of the mailboxes belongs to the domain or to a parent domain
// of the team.
func (t *Team) receivesAt(ctx context.Context, tx tx, mailboxes []string, name string) (bool, error) {
	for _, mailbox := range mailboxes {
		var owner string
		err := tx.QueryRow(ctx, `SELECT name FROM addresses
			WHERE team_id = $1 AND mailbox = $2 AND retired_at = 0`, []any{t.id, mailbox}, &owner)
		if errors.Is(err, dmarcd.ErrNotFound) {
			continue
		}
		if err != nil || dmarcd.Covers(owner, name) {
			return err == nil, err
		}
	}
	return false, nil
}

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

// CheckLag returns for how long the oldest due check has been due, 0 if none is.
func (s *Store) CheckLag(ctx context.Context) (time.Duration, error) {
	now := unix(s.now())
	var since int64
	err := s.own().QueryRow(ctx, `SELECT COALESCE(MIN(next_check_at), $1) FROM domains WHERE next_check_at <= $1 AND deleted_at = 0`, []any{now}, &since)
	if err != nil {
		return 0, fmt.Errorf("find the oldest due check: %w", err)
	}
	return time.Duration(now-since) * time.Second, nil
}

// ClaimDueDomains leases due domains of several teams in one transaction: up to slots[team] of
// each team, longest waiting first. They are due again after the lease unless a check is saved, and
// later after each unfinished check. A domain with maxUnfinished unfinished checks is suspended,
// with an event.
func (s *Store) ClaimDueDomains(ctx context.Context, lease time.Duration, slots map[dmarcd.TeamID]int) ([]dmarcd.DueDomain, error) {
	now := s.now()
	var due []dmarcd.DueDomain
	err := s.Team(system).retryTx(ctx, func(tx tx) error {
		due = nil
		claimed, err := claimRows(ctx, tx, domainClaim, now.Add(lease), slots, scanClaim)
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

func scanClaim(scan db.Scanner) (claim, error) {
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
