package auth

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/dmarcd/dmarcd"
)

// InvitationPath is the path of invitation links; the secret follows.
const InvitationPath = "/app/invitation/"

// NewInvitation generates the secret of an invitation, and the hash to store.
func NewInvitation() (secret string, hash [32]byte) {
	secret = newSecret()
	return secret, hashSecret(secret)
}

// InvitationLink returns the link of an invitation for the server at the base URL.
func InvitationLink(baseURL, secret string) (string, error) {
	base, err := url.Parse(baseURL)
	if err != nil {
		return "", fmt.Errorf("read the base URL: %w", err)
	}
	origin := url.URL{Scheme: base.Scheme, Host: base.Host}
	return origin.String() + InvitationPath + secret, nil
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
	if _, err := i.Find(ctx, secret); err != nil {
		return dmarcd.SignIn{}, err
	}
	claim := dmarcd.Claim{User: answer.SignedIn, Email: answer.Email, Name: answer.Name}
	if answer.SignedIn == 0 && answer.Password != "" {
		hash, err := i.Passwords.Hash(ctx, secret, answer.Password) // one at a time for each link
		if err != nil {
			return dmarcd.SignIn{}, err
		}
		claim.PasswordHash = hash
	}
	return i.Store.UseInvitation(ctx, hashSecret(secret), claim, audit...)
}
