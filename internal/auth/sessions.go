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
	// seenEvery is how often the last use of a session is saved.
	seenEvery = time.Minute
	// seenTimeout limits the delay of the request by that.
	seenTimeout = time.Second
	// maxUserAgent is in bytes.
	maxUserAgent = 200
)

// SessionStore stores sessions.
type SessionStore interface {
	// CreateSession stores a session and ends the replaced one. It is dmarcd.ErrUnauthorized if the
	// password has changed.
	CreateSession(ctx context.Context, session dmarcd.NewSession) error
	// Session returns the session with that hash, or dmarcd.ErrNotFound.
	Session(ctx context.Context, hash [32]byte) (dmarcd.Session, error)
	// TouchSession saves when a session was last used.
	TouchSession(ctx context.Context, hash [32]byte, seenAt time.Time) error
	EndSession(ctx context.Context, hash [32]byte, audit ...dmarcd.AuditEntry) error
}

// Client is the browser of a request.
type Client struct {
	Address   string // without a port
	UserAgent string
}

// Sessions manages sessions. It does not cache them, so that an ended session is rejected
// immediately. It is safe for concurrent use.
type Sessions struct {
	store SessionStore
	now   func() time.Time
	log   *slog.Logger
}

// NewSessions returns sessions that use the store and clock.
func NewSessions(store SessionStore, now func() time.Time, log *slog.Logger) *Sessions {
	return &Sessions{store: store, now: now, log: log}
}

// Begin starts a session and returns the secret for the cookie. The secret is always new,
// and the previous session of the browser ends: this prevents session fixation. A sign-in
// that a change of the password made void is dmarcd.ErrUnauthorized.
func (s *Sessions) Begin(ctx context.Context, of dmarcd.SignIn, client Client, before string) (secret string, err error) {
	secret = newSecret()
	userAgent := strings.ToValidUTF8(client.UserAgent[:min(len(client.UserAgent), maxUserAgent)], "")
	err = s.store.CreateSession(ctx, dmarcd.NewSession{
		Hash:         hashSecret(secret),
		User:         of.ID,
		PasswordHash: of.PasswordHash,
		Replaces:     hashSecret(before),
		ExpiresAt:    s.now().Add(dmarcd.SessionLife),
		UserAgent:    strings.ReplaceAll(userAgent, "\x00", ""), // PostgreSQL cannot store it
		Address:      client.Address,
	})
	if err != nil {
		return "", err
	}
	return secret, nil
}

// Resolve returns the session of a secret, or dmarcd.ErrUnauthorized if the secret is
// malformed or unknown, or the session has expired. It counts as a use of the session.
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
		// The next use tries again.
		s.log.Warn("could not record the last use of a session", "error", err)
	}
}

// End ends the session.
func (s *Sessions) End(ctx context.Context, secret string) error {
	return s.store.EndSession(ctx, hashSecret(secret))
}
