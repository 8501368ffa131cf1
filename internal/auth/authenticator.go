package auth

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
)

const (
	// maxStale is how old a cached credential may be: less than the second
	// within which a revoked token or a denied team must be refused.
	maxStale = 900 * time.Millisecond
	// maxCached bounds the memory; a fuller cache is emptied, which costs one
	// lookup for each token in use.
	maxCached = 10_000
	// touchEvery is how often the last use of tokens is written down.
	touchEvery = time.Second
)

// Credentials is where tokens are looked up.
type Credentials interface {
	// Credential returns the token with that hash, or dmarcd.ErrNotFound.
	Credential(ctx context.Context, hash [32]byte) (dmarcd.Credential, error)
	// TouchToken keeps when a token was last used, to the minute.
	TouchToken(ctx context.Context, id dmarcd.TokenID, usedAt time.Time) error
}

// Authenticator resolves bearer tokens. It remembers what it looked up for less
// than a second, and writes down the last use of tokens while Run runs. It is
// safe for concurrent use.
type Authenticator struct {
	credentials Credentials
	now         func() time.Time
	log         *slog.Logger

	mu      sync.Mutex
	cached  map[[32]byte]cached
	touched map[dmarcd.TokenID]time.Time // the minute that is written down
	pending map[dmarcd.TokenID]time.Time // the minute that is not yet
}

type cached struct {
	credential dmarcd.Credential
	asked      time.Time // before the lookup: how old the knowledge is
}

// NewAuthenticator returns an authenticator on that store and clock.
func NewAuthenticator(credentials Credentials, now func() time.Time, log *slog.Logger) *Authenticator {
	return &Authenticator{
		credentials: credentials,
		now:         now,
		log:         log,
		cached:      map[[32]byte]cached{},
		touched:     map[dmarcd.TokenID]time.Time{},
		pending:     map[dmarcd.TokenID]time.Time{},
	}
}

// Authenticate returns what the secret resolves to, or dmarcd.ErrUnauthorized if
// it is malformed, unknown, revoked or expired.
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
	a.mu.Lock()
	known, ok := a.cached[hash]
	a.mu.Unlock()
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
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.cached) >= maxCached {
		clear(a.cached)
	}
	a.cached[hash] = cached{credential: credential, asked: now}
	return credential, nil
}

// touch notes the use of a token if that minute is not noted already.
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

// Run writes down the last use of tokens until ctx ends, and then what is left.
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
			// The next use of the token notes it again.
			a.log.Warn("could not record the last use of a token", "token", id.String(), "error", err)
			return
		}
		a.mu.Lock()
		a.touched[id] = minute
		a.mu.Unlock()
	}
}
