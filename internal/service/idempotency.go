package service

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store"
)

// StoredAnswer is the answer to an earlier request with the same idempotency key.
type StoredAnswer = store.StoredAnswer

// A KeyClaim is the right of one request to use an idempotency key.
type KeyClaim struct {
	hash  [32]byte
	until time.Time
}

// ClaimKey claims an idempotency key, of which only the hash is stored. If a request with the key was
// answered within 24 hours, its answer is known; one that is under way is dmarcd.ErrConflict.
func (t *Team) ClaimKey(ctx context.Context, key string) (claim KeyClaim, known *StoredAnswer, err error) {
	if err := t.may(dmarcd.RightChange); err != nil {
		return KeyClaim{}, nil, err
	}
	claim.hash = sha256.Sum256([]byte(key))
	claim.until, known, err = t.team.ClaimKey(ctx, claim.hash)
	return claim, known, err
}

// SaveAnswer stores the answer to the request with a claim.
func (t *Team) SaveAnswer(ctx context.Context, claim KeyClaim, answer StoredAnswer) error {
	if err := t.may(dmarcd.RightChange); err != nil {
		return err
	}
	return t.team.SaveAnswer(ctx, claim.hash, claim.until, answer)
}

// ReleaseKey ends a claim without an answer, so that the request can be repeated.
func (t *Team) ReleaseKey(ctx context.Context, claim KeyClaim) error {
	if err := t.may(dmarcd.RightChange); err != nil {
		return err
	}
	return t.team.ReleaseKey(ctx, claim.hash, claim.until)
}
