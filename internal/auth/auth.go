package auth

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/cache"
)

const (
	// maxStale is the maximum age of a cached credential. A revoked token or a blocked
	// team must be rejected within a second.
	maxStale = 900 * time.Millisecond
	// maxCached limits the memory.
	maxCached = 10_000
	// touchEvery is how often the last use of tokens is saved.
	touchEvery = time.Second
)

// Credentials looks up tokens.
type Credentials interface {
	// Credential returns the token with that hash, or dmarcd.ErrNotFound.
	Credential(ctx context.Context, hash [32]byte) (dmarcd.Credential, error)
	// TouchToken saves when a token was last used, with a resolution of one minute.
	TouchToken(ctx context.Context, id dmarcd.TokenID, usedAt time.Time) error
}

// Authenticator resolves bearer tokens. It caches results for less than a second, and
// saves the last use of tokens while Run runs. It is safe for concurrent use.
type Authenticator struct {
	credentials Credentials
	now         func() time.Time
	log         *slog.Logger

	cached *cache.Cache[[32]byte, cached]

	mu      sync.Mutex
	touched map[dmarcd.TokenID]time.Time // the last saved minute
	pending map[dmarcd.TokenID]time.Time // the minute to be saved
}

type cached struct {
	credential dmarcd.Credential
	asked      time.Time // the start of the lookup
}

// NewAuthenticator returns an authenticator that uses the store and clock.
func NewAuthenticator(credentials Credentials, now func() time.Time, log *slog.Logger) *Authenticator {
	return &Authenticator{
		credentials: credentials,
		now:         now,
		log:         log,
		cached:      cache.New[[32]byte, cached](maxCached),
		touched:     map[dmarcd.TokenID]time.Time{},
		pending:     map[dmarcd.TokenID]time.Time{},
	}
}

// Authenticate resolves the secret. It returns dmarcd.ErrUnauthorized if the secret is
// malformed, unknown, revoked or expired.
func (a *Authenticator) Authenticate(ctx context.Context, secret string) (dmarcd.Credential, error) {
	if !ValidToken(secret) {
		return dmarcd.Credential{}, dmarcd.ErrUnauthorized
	}
	now := a.now()
	credential, err := a.lookUp(ctx, HashToken(secret), now)
	if err != nil {
		return dmarcd.Credential{}, err
	}
	if !credential.Token.Valid(now) {
		return dmarcd.Credential{}, dmarcd.ErrUnauthorized
	}
	a.touch(credential.Token, now.Truncate(time.Minute))
	return credential, nil
}

func (a *Authenticator) lookUp(ctx context.Context, hash [32]byte, now time.Time) (dmarcd.Credential, error) {
	known, ok := a.cached.Get(hash)
	if ok && now.Sub(known.asked) < maxStale {
		return known.credential, nil
	}
	credential, err := a.credentials.Credential(ctx, hash)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return dmarcd.Credential{}, dmarcd.ErrUnauthorized
	}
	if err != nil {
		return dmarcd.Credential{}, err
	}
	a.cached.Put(hash, cached{credential: credential, asked: now}, 1)
	return credential, nil
}

// touch schedules saving the use of a token unless that minute is saved already.
func (a *Authenticator) touch(token dmarcd.Token, minute time.Time) {
	if !token.UsedAt.Before(minute) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.touched[token.ID].Before(minute) {
		a.pending[token.ID] = minute
	}
}

// Run saves the last use of tokens until ctx ends, and the remaining ones then.
func (a *Authenticator) Run(ctx context.Context) error {
	tick := time.NewTicker(touchEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			a.writeTouches(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), touchEvery)
			defer cancel()
			a.writeTouches(last)
			return nil
		}
	}
}

func (a *Authenticator) writeTouches(ctx context.Context) {
	a.mu.Lock()
	pending := a.pending
	a.pending = map[dmarcd.TokenID]time.Time{}
	if len(a.touched) >= maxCached {
		clear(a.touched)
	}
	a.mu.Unlock()
	for id, minute := range pending {
		if err := a.credentials.TouchToken(ctx, id, minute); err != nil {
			// The next use of the token tries again.
			a.log.Warn("could not record the last use of a token", "token", id.String(), "error", err)
			return
		}
		a.mu.Lock()
		a.touched[id] = minute
		a.mu.Unlock()
	}
}
