package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// RecordTarget returns the server to which the records of a domain are published, with its encrypted
// key, or dmarcd.ErrNotFound.
func (t *Team) RecordTarget(ctx context.Context, domain string) (target dmarcd.PublishTarget, err error) {
	if target.Domain, err = t.domainID(ctx, t.store, domain, ""); err != nil {
		return dmarcd.PublishTarget{}, err
	}
	var created int64
	err = t.store.QueryRow(ctx, `SELECT kind, server, zone, secret, created_at FROM record_targets WHERE team_id = $1 AND domain_id = $2`,
		[]any{t.id, target.Domain}, &target.Kind, &target.Server, &target.Zone, &target.Secret, &created)
	target.CreatedAt = fromUnix(created)
	return target, err
}

// SetRecordTarget stores the server to which the records of a domain are published, instead of the one
// before. seal returns its key, encrypted for the domain.
func (t *Team) SetRecordTarget(ctx context.Context, domain string, target dmarcd.PublishTarget, seal func(dmarcd.PublishTarget) ([]byte, error), audit ...dmarcd.AuditEntry) (dmarcd.PublishTarget, error) {
	target.CreatedAt = t.store.now()
	err := t.retryTx(ctx, func(tx tx) (err error) {
		if target.Domain, err = t.domainID(ctx, tx, domain, t.store.db.LockRow); err != nil {
			return err
		}
		secret, err := seal(target)
		if err != nil {
			return err
		}
		tx.note(t.id, domain, audit...)
		_, err = tx.Exec(ctx, `INSERT INTO record_targets (team_id, domain_id, kind, server, zone, secret, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT (team_id, domain_id) DO UPDATE SET kind = excluded.kind, server = excluded.server, zone = excluded.zone,
				secret = excluded.secret, created_at = excluded.created_at`,
			t.id, target.Domain, target.Kind, target.Server, target.Zone, secret, unix(target.CreatedAt))
		return err
	})
	return target, err
}

// RemoveRecordTarget removes the server to which the records of a domain are published, with its key.
// What is published there stays.
func (t *Team) RemoveRecordTarget(ctx context.Context, domain string, audit ...dmarcd.AuditEntry) error {
	return t.retryTx(ctx, func(tx tx) error {
		id, err := t.domainID(ctx, tx, domain, t.store.db.LockRow)
		if err != nil {
			return err
		}
		tx.note(t.id, domain, audit...)
		return tx.ExecOr(ctx, dmarcd.ErrNotFound, `DELETE FROM record_targets WHERE team_id = $1 AND domain_id = $2`, t.id, id)
	})
}

// BeginRecord stores that a version of a record is being published elsewhere, and returns it with the id
// of the attempt. PublishRecord or EndAttempt end it. If another version than base is published, or
// another one is on its way, it is dmarcd.ErrConflict.
func (t *Team) BeginRecord(ctx context.Context, domain string, base int64, v dmarcd.RecordVersion) (dmarcd.RecordVersion, error) {
	v.Attempt, v.Version, v.Label, v.CreatedAt = db.NewID(), base+1, "", t.store.now()
	document, err := json.Marshal(v)
	if err != nil {
		return v, err
	}
	err = t.retryTx(ctx, func(tx tx) error {
		id, published, err := t.basedOn(ctx, tx, domain, v.Kind, base)
		if err != nil {
			return err
		}
		begun, err := tx.Exec(ctx, `INSERT INTO record_attempts (team_id, domain_id, kind, id, version, created_at) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (team_id, domain_id, kind) DO NOTHING`, t.id, id, v.Kind, v.Attempt, string(document), unix(v.CreatedAt))
		if err == nil && (begun == 0 || published.Label != "") {
			err = dmarcd.ErrConflict
		}
		return err
	})
	return v, err
}

// BegunRecord returns the version of a record that is being published elsewhere, or dmarcd.ErrNotFound.
func (t *Team) BegunRecord(ctx context.Context, domain string, kind dmarcd.RecordKind) (v dmarcd.RecordVersion, err error) {
	id, err := t.domainID(ctx, t.store, domain, "")
	if err != nil {
		return v, err
	}
	var document string
	var created int64
	if err := t.store.QueryRow(ctx, `SELECT version, created_at FROM record_attempts WHERE team_id = $1 AND domain_id = $2 AND kind = $3`,
		[]any{t.id, id, kind}, &document, &created); err != nil {
		return v, err
	}
	err = json.Unmarshal([]byte(document), &v)
	v.CreatedAt = fromUnix(created)
	return v, err
}

// EndAttempt ends the publication of a version that was not published. One that another process ended
// is dmarcd.ErrNotFound.
func (t *Team) EndAttempt(ctx context.Context, domain string, v dmarcd.RecordVersion) error {
	return t.retryTx(ctx, func(tx tx) error {
		id, err := t.domainID(ctx, tx, domain, t.store.db.LockRow)
		if err != nil {
			return err
		}
		return t.endAttempt(ctx, tx, id, v)
	})
}

func (t *Team) endAttempt(ctx context.Context, tx tx, id dmarcd.DomainID, v dmarcd.RecordVersion) error {
	return tx.ExecOr(ctx, dmarcd.ErrNotFound, `DELETE FROM record_attempts WHERE team_id = $1 AND domain_id = $2 AND kind = $3 AND id = $4`,
		t.id, id, v.Kind, v.Attempt)
}

// BegunRecords returns up to limit versions of all teams that are being published elsewhere since
// between two ages.
func (s *Store) BegunRecords(ctx context.Context, from, to time.Duration, limit int) ([]BegunRecord, error) {
	now := s.now()
	return db.Collect(ctx, s.own(), `SELECT record_attempts.team_id, domains.name, record_attempts.kind FROM record_attempts
		JOIN domains ON domains.team_id = record_attempts.team_id AND domains.id = record_attempts.domain_id AND domains.deleted_at = 0
		WHERE record_attempts.created_at <= $1 AND record_attempts.created_at > $2 ORDER BY record_attempts.created_at DESC LIMIT $3`,
		[]any{unix(now.Add(-from)), unix(now.Add(-to)), limit},
		scanBegun)
}

// BegunRecord names a version that is being published elsewhere.
type BegunRecord struct {
	Team   dmarcd.TeamID
	Domain string
	Kind   dmarcd.RecordKind
}

func scanBegun(scan db.Scanner) (b BegunRecord, err error) {
	err = scan(&b.Team, &b.Domain, &b.Kind)
	return b, err
}
