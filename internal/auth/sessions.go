package auth

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
)

const (
	// seenEvery is how often the last use of a session is written down.
	seenEvery = time.Minute
	// seenTimeout bounds the wait for that: the page does not need it.
	seenTimeout = time.Second
	// maxUserAgent is how much is kept of what a browser calls itself, in bytes.
	maxUserAgent = 200
)

// SessionStore is where sessions are kept.
type SessionStore interface {
	// CreateSession stores a session and ends the one that it replaces.
	CreateSession(ctx context.Context, session dmarcd.NewSession) error
	// Session returns the session with that hash, or dmarcd.ErrNotFound.
	Session(ctx context.Context, hash [32]byte) (dmarcd.Session, error)
	// TouchSession keeps when a session was last used.
	TouchSession(ctx context.Context, hash [32]byte, seenAt time.Time) error
	// EndSession ends a session.
	EndSession(ctx context.Context, hash [32]byte, audit ...dmarcd.AuditEntry) error
}

// Client is the browser that a request came from.
type Client struct {
	Address   string // without a port
	UserAgent string
}

// Sessions begins, finds and ends sessions. Every look goes to the store, so that
// a session that was ended is refused at once. It is safe for concurrent use.
type Sessions struct {
	store SessionStore
	now   func() time.Time
	log   *slog.Logger
}

// NewSessions returns sessions in that store, by that clock.
func NewSessions(store SessionStore, now func() time.Time, log *slog.Logger) *Sessions {
	return &Sessions{store: store, now: now, log: log}
}

// Begin signs a user in on a browser and returns the secret for its cookie. The
// secret is always a new one, and the session that the browser had before, if
// any, ends: a secret that somebody else put there opens nothing.
func (s *Sessions) Begin(ctx context.Context, user dmarcd.UserID, client Client, before string) (secret string, err error) {
	secret = newSecret()
	userAgent := strings.ToValidUTF8(client.UserAgent[:min(len(client.UserAgent), maxUserAgent)], "")
	err = s.store.CreateSession(ctx, dmarcd.NewSession{
		Hash:      hashSecret(secret),
		User:      user,
		Replaces:  hashSecret(before),
		ExpiresAt: s.now().Add(dmarcd.SessionLife),
		UserAgent: strings.ReplaceAll(userAgent, "\x00", ""), // PostgreSQL has no place for it
		Address:   client.Address,
	})
	if err != nil {
		return "", err
	}
	return secret, nil
}

// Resolve returns the session of a cookie's secret, or dmarcd.ErrUnauthorized if
// it is malformed, unknown, too old or was not used for too long. A look is a
// use.
func (s *Sessions) Resolve(ctx context.Context, secret string) (dmarcd.Session, error) {
	if !validSecret(secret) {
		return dmarcd.Session{}, dmarcd.ErrUnauthorized
	}
	now := s.now()
	session, err := s.store.Session(ctx, hashSecret(secret))
	if errors.Is(err, dmarcd.ErrNotFound) || err == nil && !session.Valid(now) {
		return dmarcd.Session{}, dmarcd.ErrUnauthorized
	}
	if err != nil {
		return dmarcd.Session{}, err
	}
	if now.Sub(session.SeenAt) >= seenEvery {
		s.touch(ctx, session.Hash, now)
	}
	return session, nil
}

func (s *Sessions) touch(ctx context.Context, hash [32]byte, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, seenTimeout)
	defer cancel()
	if err := s.store.TouchSession(ctx, hash, now); err != nil {
		// The next use notes it again.
		s.log.Warn("could not record the last use of a session", "error", err)
	}
}

// End signs the browser out.
func (s *Sessions) End(ctx context.Context, secret string) error {
	return s.store.EndSession(ctx, hashSecret(secret))
}
