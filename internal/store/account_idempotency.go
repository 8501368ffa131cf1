package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
)

const (
	// keyMemory is how long an idempotency key is stored.
	keyMemory = 24 * time.Hour
	// keyLease limits a request with an idempotency key, longer than the largest upload may take:
	// after a crash of the process, the key can be claimed again.
	keyLease = 15 * time.Minute
	// maxKeys limits the stored idempotency keys of a team.
	maxKeys = 10_000
)

// StoredAnswer is what is stored about a request with an idempotency key.
type StoredAnswer struct {
	Request [32]byte // its HMAC, with the idempotency key as the key
	// Answer is in the encoding of the caller; empty if it was too large.
	Answer []byte
}

// ClaimKey claims the idempotency key with this SHA-256 hash for a request, until a time. If a request
// with the key was answered within 24 hours, it returns that answer instead. If one is under way, it
// returns ErrConflict; if the team has too many keys, a *dmarcd.InvalidError.
func (t *Team) ClaimKey(ctx context.Context, hash [32]byte) (until time.Time, known *StoredAnswer, err error) {
	now := t.store.now()
	end := now.Add(keyLease)
	err = t.tx(ctx, func(tx tx) error {
		var claimed, expires int64
		var request, answer []byte
		err := tx.QueryRow(ctx, `SELECT claimed_until, expires_at, request, answer FROM idempotency_keys WHERE team_id = $1 AND hash = $2`,
			[]any{t.id, hash[:]}, &claimed, &expires, &request, &answer)
		switch {
		case errors.Is(err, dmarcd.ErrNotFound):
			if err := t.limitKeys(ctx, tx); err != nil {
				return err
			}
		case err != nil:
			return err
		case expires > unix(now) && claimed > unix(now):
			return dmarcd.ErrConflict
		case expires > unix(now) && claimed == 0:
			known = &StoredAnswer{Answer: answer}
			copy(known.Request[:], request)
			return nil
		}
		until = end
		// Another request may have been faster.
		return tx.ExecOr(ctx, dmarcd.ErrConflict, `INSERT INTO idempotency_keys (team_id, hash, claimed_until, expires_at, request, answer)
			VALUES ($1, $2, $3, $4, $5, $5)
			ON CONFLICT (team_id, hash) DO UPDATE SET claimed_until = excluded.claimed_until, expires_at = excluded.expires_at
				WHERE idempotency_keys.expires_at <= $6 OR idempotency_keys.claimed_until BETWEEN 1 AND $6`,
			t.id, hash[:], unix(end), unix(now.Add(keyMemory)), []byte{}, unix(now))
	})
	if err != nil {
		return time.Time{}, nil, fmt.Errorf("claim an idempotency key: %w", err)
	}
	return until, known, nil
}

func (t *Team) limitKeys(ctx context.Context, tx tx) error {
	var have int
	err := tx.QueryRow(ctx, `SELECT count(*) FROM idempotency_keys WHERE team_id = $1`, []any{t.id}, &have)
	if err == nil && have >= maxKeys {
		err = &dmarcd.InvalidError{Field: "Idempotency-Key", Message: fmt.Sprintf("The team has used %d idempotency keys within 24 hours, which is the limit. Send the request without one.", have)}
	}
	return err
}

// SaveAnswer stores the answer to the request that has claimed an idempotency key until a time. It
// returns ErrNotFound if the claim has ended.
func (t *Team) SaveAnswer(ctx context.Context, hash [32]byte, until time.Time, a StoredAnswer) error {
	return t.tx(ctx, func(tx tx) error {
		return tx.ExecOr(ctx, dmarcd.ErrNotFound, `UPDATE idempotency_keys SET claimed_until = 0, request = $4, answer = $5
			WHERE team_id = $1 AND hash = $2 AND claimed_until = $3`, t.id, hash[:], unix(until), a.Request[:], append([]byte{}, a.Answer...))
	})
}

// ReleaseKey ends the claim of an idempotency key early: the request has changed nothing, and can be
// retried.
func (t *Team) ReleaseKey(ctx context.Context, hash [32]byte, until time.Time) error {
	_, err := t.exec(ctx, `DELETE FROM idempotency_keys WHERE team_id = $1 AND hash = $2 AND claimed_until = $3`, t.id, hash[:], unix(until))
	return err
}
