package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// firstRefresh is when an SPF record is resolved again for the first time after it was published.
const firstRefresh = 5 * time.Minute

// spfClaim claims managed SPF records that are due to be resolved again: spf_due_at is 0 for none.
var spfClaim = rowClaim{
	table: "domains", due: "spf_due_at", where: "spf_due_at > 0 AND deleted_at = 0", set: "spf_due_at = CAST($3 AS BIGINT)", columns: "team_id, name",
}

// DueSPF is a domain whose managed SPF record is due.
type DueSPF struct {
	Team dmarcd.TeamID
	Name string
}

// DueSPFTeams returns the teams with due SPF records, in any order.
func (s *Store) DueSPFTeams(ctx context.Context) ([]dmarcd.TeamID, error) {
	return s.dueTeams(ctx, spfClaim)
}

// ClaimDueSPF leases due SPF records of several teams: up to slots[team] of each team, longest waiting
// first. They are due again after the lease.
func (s *Store) ClaimDueSPF(ctx context.Context, lease time.Duration, slots map[dmarcd.TeamID]int) (due []DueSPF, err error) {
	err = s.Team(system).retryTx(ctx, func(tx tx) error {
		due, err = claimRows(ctx, tx, spfClaim, s.now().Add(lease), slots, func(scan db.Scanner) (d DueSPF, err error) {
			return d, scan(&d.Team, &d.Name)
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("claim due SPF records: %w", err)
	}
	return due, nil
}

// ServedSPF is what the name of a managed SPF record answers.
type ServedSPF struct {
	dmarcd.RecordVersion

	Records []ZoneRecord
	// Problem is why Records are not those of now, "" if they are.
	Problem string
}

// ServedSPF returns the managed SPF record of a domain, or dmarcd.ErrNotFound.
func (t *Team) ServedSPF(ctx context.Context, domain string) (s ServedSPF, err error) {
	var id dmarcd.DomainID
	err = t.store.QueryRow(ctx, `SELECT id, spf_problem FROM domains WHERE team_id = $1 AND name = $2 AND deleted_at = 0`, []any{t.id, domain}, &id, &s.Problem)
	if err != nil {
		return s, err
	}
	s.RecordVersion, err = t.publishedVersion(ctx, t.store, id, dmarcd.RecordSPF)
	if err == nil && s.Label == "" {
		err = dmarcd.ErrNotFound
	}
	if err != nil {
		return s, err
	}
	var content string
	if err := t.store.QueryRow(ctx, `SELECT content FROM zone_names WHERE label = $1`, []any{s.Label}, &content); err != nil {
		return s, err
	}
	s.Records, err = decodeContent(content)
	return s, err
}

// SaveSPF saves that the published version v of an SPF record was resolved, and when it is due again. nil
// records leave what the name answers. Another problem than before is an event. If another version is
// published it is dmarcd.ErrConflict.
func (t *Team) SaveSPF(ctx context.Context, domain string, v dmarcd.RecordVersion, records []ZoneRecord, next time.Duration, problem string) error {
	return t.retryTx(ctx, func(tx tx) error {
		id, published, err := t.basedOn(ctx, tx, domain, dmarcd.RecordSPF, v.Version)
		if err == nil && published.Label != v.Label {
			err = dmarcd.ErrConflict
		}
		var before string
		if err == nil {
			err = tx.QueryRow(ctx, `SELECT spf_problem FROM domains WHERE team_id = $1 AND id = $2`, []any{t.id, id}, &before)
		}
		if err != nil {
			return err
		}
		if records != nil {
			if err := tx.serve(ctx, v.Label, records); err != nil {
				return err
			}
		}
		now := t.store.now()
		// Texts that differ in the details of a failure are about the same problem.
		known, _, _ := strings.Cut(before, ":")
		if what, _, _ := strings.Cut(problem, ":"); what != known && problem != "" {
			t.addEvents(tx, id, now, dmarcd.Event{Kind: dmarcd.SPFOutdated, EventData: dmarcd.EventData{Reason: problem}})
		}
		_, err = tx.Exec(ctx, `UPDATE domains SET spf_due_at = $1, spf_problem = $2 WHERE team_id = $3 AND id = $4`, unix(now.Add(next)), problem, t.id, id)
		return err
	})
}

// scheduleSPF sets when the SPF record of a domain is resolved again, after it was published or stopped.
func (t *Team) scheduleSPF(ctx context.Context, tx tx, id dmarcd.DomainID, due int64) error {
	_, err := tx.Exec(ctx, `UPDATE domains SET spf_due_at = $1, spf_problem = '' WHERE team_id = $2 AND id = $3`, due, t.id, id)
	return err
}
