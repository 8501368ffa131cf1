package auth

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/dmarcd/dmarcd"
)

// WelcomePath is where the links of invites lead; the secret follows.
const WelcomePath = "/app/welcome/"

// NewInvite draws the secret of an invite, and what is stored of it.
func NewInvite() (secret string, hash [32]byte) {
	secret = newSecret()
	return secret, hashSecret(secret)
}

// WelcomeLink returns the link of an invite at the server with that base URL.
func WelcomeLink(baseURL, secret string) (string, error) {
	base, err := url.Parse(baseURL)
	if err != nil {
		return "", fmt.Errorf("read the base URL: %w", err)
	}
	origin := url.URL{Scheme: base.Scheme, Host: base.Host}
	return origin.String() + WelcomePath + secret, nil
}

// InviteStore is where invites are kept.
type InviteStore interface {
	// Invite returns the invite with that hash, or dmarcd.ErrNotFound.
	Invite(ctx context.Context, hash [32]byte) (dmarcd.Invite, error)
	// UseInvite uses it up, writes the audit entries, and returns the user whom it lets
	// in.
	UseInvite(ctx context.Context, hash [32]byte, claim dmarcd.Claim, audit ...dmarcd.AuditEntry) (dmarcd.User, error)
}

// Welcome lets people in by the links of invites. It is safe for concurrent use.
type Welcome struct {
	Store     InviteStore
	Passwords *Passwords
	Now       func() time.Time
}

// Look returns the invite of a link, or dmarcd.ErrNotFound if it is malformed,
// unknown, used or too old. It changes nothing: a program that looks at links in
// mails, or a browser that fetches ahead, does not use one up.
func (w *Welcome) Look(ctx context.Context, secret string) (dmarcd.Invite, error) {
	if !validSecret(secret) {
		return dmarcd.Invite{}, dmarcd.ErrNotFound
	}
	invite, err := w.Store.Invite(ctx, hashSecret(secret))
	if err == nil && !invite.Valid(w.Now()) {
		err = dmarcd.ErrNotFound
	}
	if err != nil {
		return dmarcd.Invite{}, err
	}
	return invite, nil
}

// Answer is what a person who follows a link tells of themselves.
type Answer struct {
	// SignedIn is the user who is signed in already; 0 is nobody.
	SignedIn dmarcd.UserID
	// Email counts where the invite names nobody.
	Email string
	Name  string
	// Password is the one that they choose; "" leaves a user's as it is, and is
	// an InvalidError for a person who is new.
	Password string
}

// Accept uses a link up and returns the user whom it lets in. A link that cannot
// be used is dmarcd.ErrNotFound, one for somebody else than who is signed in is
// dmarcd.ErrForbidden, and dmarcd.ErrConflict asks the person to sign in first.
// Whatever is refused leaves the link as it was.
func (w *Welcome) Accept(ctx context.Context, secret string, answer Answer, audit ...dmarcd.AuditEntry) (dmarcd.User, error) {
	// Only who has a good link may have us hash a password.
	if _, err := w.Look(ctx, secret); err != nil {
		return dmarcd.User{}, err
	}
	claim := dmarcd.Claim{User: answer.SignedIn, Email: answer.Email, Name: answer.Name}
	if answer.SignedIn == 0 && answer.Password != "" {
		hash, err := w.Passwords.Hash(ctx, secret, answer.Password) // one at a time for each link
		if err != nil {
			return dmarcd.User{}, err
		}
		claim.PasswordHash = hash
	}
	return w.Store.UseInvite(ctx, hashSecret(secret), claim, audit...)
}
