package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
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
	// CreateSession stores a session with the audit entries and ends the replaced one. It is
	// dmarcd.ErrUnauthorized if the password has changed.
	CreateSession(ctx context.Context, session dmarcd.NewSession, audit ...dmarcd.AuditEntry) error
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
func (s *Sessions) Begin(ctx context.Context, of dmarcd.SignIn, client Client, before string, audit ...dmarcd.AuditEntry) (secret string, err error) {
	secret = newSecret()
	userAgent := strings.ToValidUTF8(client.UserAgent[:min(len(client.UserAgent), maxUserAgent)], "")
	err = s.store.CreateSession(ctx, dmarcd.NewSession{
		Hash:         hashSecret(secret),
		User:         of.ID,
		PasswordHash: of.PasswordHash,
		Strong:       of.Strong,
		ProvedAt:     of.ProvedAt,

		ProviderSession: of.ProviderSession,

		Replaces:  hashSecret(before),
		ExpiresAt: s.now().Add(dmarcd.SessionLife),
		UserAgent: strings.ReplaceAll(userAgent, "\x00", ""), // PostgreSQL cannot store it
		Address:   client.Address,
	}, audit...)
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

// The paths of links with a secret, which follows.
const (
	InvitationPath = "/app/invitation/"
	ResetPath      = "/app/reset/"
	AddressPath    = "/app/account/address/"
)

// NewInvitation generates the secret of an invitation, and the hash to store.
func NewInvitation() (secret string, hash [32]byte) { return NewLink() }

// NewLink generates the secret of a link, and the hash to store.
func NewLink() (secret string, hash [32]byte) {
	secret = newSecret()
	return secret, hashSecret(secret)
}

// HashLink returns the hash of the secret of a link, or dmarcd.ErrNotFound if it is malformed.
func HashLink(secret string) ([32]byte, error) {
	if !validSecret(secret) {
		return [32]byte{}, dmarcd.ErrNotFound
	}
	return hashSecret(secret), nil
}

// InvitationLink returns the link of an invitation for the server at the base URL.
func InvitationLink(baseURL, secret string) (string, error) {
	return Link(baseURL, InvitationPath, secret)
}

// Link returns the link to a path for the server at the base URL.
func Link(baseURL, path, secret string) (string, error) {
	base, err := url.Parse(baseURL)
	if err != nil {
		return "", fmt.Errorf("read the base URL: %w", err)
	}
	origin := url.URL{Scheme: base.Scheme, Host: base.Host}
	return origin.String() + path + secret, nil
}

// InvitationStore stores invitations.
type InvitationStore interface {
	// Invitation returns the invitation with that hash, or dmarcd.ErrNotFound.
	Invitation(ctx context.Context, hash [32]byte) (dmarcd.Invitation, error)
	// UseInvitation marks the invitation as used, writes the audit entries, and returns
	// the user.
	UseInvitation(ctx context.Context, hash [32]byte, claim dmarcd.Claim, audit ...dmarcd.AuditEntry) (dmarcd.SignIn, error)
}

// Invitations handles invitation links. It is safe for concurrent use.
type Invitations struct {
	Store     InvitationStore
	Passwords *Passwords
	Now       func() time.Time
}

// Find returns the invitation of a link, or dmarcd.ErrNotFound if it is malformed,
// unknown, used or expired. It changes nothing, so that link scanners and prefetching
// browsers do not use up an invitation.
func (i *Invitations) Find(ctx context.Context, secret string) (dmarcd.Invitation, error) {
	if !validSecret(secret) {
		return dmarcd.Invitation{}, dmarcd.ErrNotFound
	}
	invitation, err := i.Store.Invitation(ctx, hashSecret(secret))
	if err == nil && !invitation.Valid(i.Now()) {
		err = dmarcd.ErrNotFound
	}
	if err != nil {
		return dmarcd.Invitation{}, err
	}
	return invitation, nil
}

// Answer is the input of a person who follows a link.
type Answer struct {
	// SignedIn is the user who is already signed in; 0 if there is none.
	SignedIn dmarcd.UserID
	// Email is used if the invitation does not contain an address.
	Email string
	Name  string
	// Password is the new password. "" keeps the password of an existing user, and is an
	// InvalidError for a new one.
	Password string
}

// Accept uses an invitation and returns the user. It returns dmarcd.ErrNotFound for an
// unusable link, dmarcd.ErrForbidden if another user is signed in, and dmarcd.ErrConflict
// if the user must sign in first. After an error the link remains usable.
func (i *Invitations) Accept(ctx context.Context, secret string, answer Answer, audit ...dmarcd.AuditEntry) (dmarcd.SignIn, error) {
	// Hashing is expensive: only the holder of a valid link may cause it.
	invitation, err := i.Find(ctx, secret)
	if err != nil {
		return dmarcd.SignIn{}, err
	}
	claim := dmarcd.Claim{User: answer.SignedIn, Email: answer.Email, Name: answer.Name}
	if answer.SignedIn == 0 && answer.Password != "" {
		hash, err := i.Passwords.Hash(ctx, secret, cmp.Or(invitation.Email, answer.Email), answer.Password) // one at a time for each link
		if err != nil {
			return dmarcd.SignIn{}, err
		}
		claim.PasswordHash = hash
	}
	return i.Store.UseInvitation(ctx, hashSecret(secret), claim, audit...)
}
