package service

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/outbound"
)

// The owner of a team chooses the server of a mailbox, and this machine may reach hosts that
// the owner cannot. Package outbound rejects addresses that are neither public nor allowed by
// the operator, with one message for all of them. Of the others users see at which stage a mailbox
// failed, and no text of the server or of the network: that is for operators, in the log, in the
// list of mailboxes and with dmarcd mailbox add. Attempts are throttled, so that adding a mailbox is
// no port scanner in a network that the operator allows.
const (
	// tryTime is the time that a login may take.
	tryTime = 20 * time.Second
	// unknownProblem is the message about a failure of no known stage.
	unknownProblem = "The mailbox cannot be read. Remove it, and add it again to see which step fails."
	// addressNotAllowed is the message about a server with a forbidden address.
	addressNotAllowed = "This installation does not connect to private or reserved addresses. An operator can allow its network with DMARCD_OUTBOUND_ALLOW."
)

// OAuth describes how to get access tokens for a mailbox (RFC 6749): with a refresh token, or without
// one by client credentials.
type OAuth struct {
	TokenURL     string   `json:"token_url"`
	ClientID     string   `json:"client_id"`
	ClientSecret string   `json:"client_secret,omitempty"`
	RefreshToken string   `json:"refresh_token,omitempty"`
	Scopes       []string `json:"scopes,omitempty"`
}

// MailboxError is a failed login to a mailbox. It is an *dmarcd.InvalidError with the message
// for users, and the full reason.
type MailboxError struct {
	// Field is a field of dmarcd.Mailbox, "password", or a field of OAuth.
	Field, Message string
	// Reason may reveal what runs at an address: it is for operators.
	Reason error
}

// Error returns the message.
func (e *MailboxError) Error() string { return e.Message }

// Unwrap returns the *dmarcd.InvalidError and the reason.
func (e *MailboxError) Unwrap() []error {
	return []error{&dmarcd.InvalidError{Field: e.Field, Message: e.Message}, e.Reason}
}

// Mailboxes returns the mailboxes without secrets. Only operators see the full reason of a
// problem.
func (t *Team) Mailboxes(ctx context.Context) ([]dmarcd.Mailbox, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, err
	}
	mailboxes, err := t.team.Mailboxes(ctx)
	if !t.actor.operator {
		for i := range mailboxes {
			mailboxes[i].Error = t.service.shownProblem(mailboxes[i])
		}
	}
	return mailboxes, err
}

// shownProblem returns the message why a mailbox is not read.
func (s *Service) shownProblem(mailbox dmarcd.Mailbox) string {
	switch {
	case mailbox.Error == "" || !mailbox.PausedAt.IsZero():
		return mailbox.Error
	case strings.Contains(mailbox.Error, outbound.ErrNotAllowed.Error()):
		return addressNotAllowed
	}
	return cmp.Or(s.options.Mailboxes.Explain(mailbox), unknownProblem)
}

// NewMailbox describes the mailbox to add.
type NewMailbox struct {
	dmarcd.Mailbox
	// Password, or OAuth unless it is nil, is used if Secret is nil.
	Password string
	OAuth    *OAuth
	// Secret is in the form of Mailboxes.Try.
	Secret []byte
	// Untried skips the login. It is for operators.
	Untried bool
}

// AddMailbox logs in to a mailbox and adds it. A failure is a *MailboxError: it is written to
// the audit log, and attempts are throttled by team and actor, because passwords could be
// guessed here.
func (t *Team) AddMailbox(ctx context.Context, wanted NewMailbox) (dmarcd.Mailbox, error) {
	if err := t.may(dmarcd.RightManage); err != nil {
		return dmarcd.Mailbox{}, err
	}
	if wanted.Untried && !t.actor.operator {
		return dmarcd.Mailbox{}, dmarcd.ErrForbidden
	}
	err := wanted.Validate()
	secret := wanted.Secret
	if err == nil && secret == nil {
		secret, err = t.service.options.Mailboxes.Secret(wanted.Password, wanted.OAuth)
	}
	if err == nil && !wanted.Untried {
		secret, err = t.tryMailbox(ctx, wanted.Mailbox, secret)
	}
	if err != nil {
		return dmarcd.Mailbox{}, err
	}
	seal := func(added dmarcd.Mailbox) ([]byte, error) {
		return t.service.options.Secrets.Seal(secret, added.SecretContext())
	}
	return t.team.AddMailbox(ctx, wanted.Mailbox, seal, t.actor.to("mailbox.add", "", wanted.Username+" at "+wanted.Host))
}

// tryMailbox logs in to a mailbox, throttled and audited, and returns the secret to store.
func (t *Team) tryMailbox(ctx context.Context, mailbox dmarcd.Mailbox, secret []byte) ([]byte, error) {
	team, user := t.team.ID(), t.actor.entry.User
	attempts := t.service.mailboxAttempts
	if err := attempts.Attempt(team.String(), t.actor.entry.Actor); err != nil {
		return nil, &dmarcd.InvalidError{Field: "host", Message: err.Error()}
	}
	secret, failed := t.logIn(ctx, mailbox, secret)
	if failed == nil {
		attempts.Succeeded(team.String(), t.actor.entry.Actor)
		return secret, nil
	}
	log, detail := t.service.options.Log, failed.Message
	if t.actor.local {
		detail = failed.Reason.Error()
	} else {
		log.WarnContext(ctx, "mailbox not added", "error", failed.Reason, "team", team, "user", user)
	}
	entry := t.actor.to("mailbox.login_failed", mailbox.Username+" at "+mailbox.Address(), detail)
	// A client must not avoid the entry by disconnecting, or a user by signing out.
	if err := t.service.store.Team(team).Note(context.WithoutCancel(ctx), entry); err != nil {
		log.ErrorContext(ctx, "audit entry not written", "error", err, "team", team, "user", user)
	}
	return nil, failed
}

// logIn logs in to a mailbox, and returns the secret to store.
func (t *Team) logIn(ctx context.Context, mailbox dmarcd.Mailbox, secret []byte) ([]byte, *MailboxError) {
	if !t.actor.local {
		limited, cancel := context.WithTimeout(ctx, tryTime)
		defer cancel()
		ctx = limited
	}
	secret, err := t.service.options.Mailboxes.Try(ctx, mailbox, secret)
	var known *MailboxError
	switch {
	case err == nil:
		return secret, nil
	case errors.As(err, &known):
		return nil, known
	case errors.Is(err, outbound.ErrNotAllowed):
		return nil, &MailboxError{Field: "host", Message: addressNotAllowed, Reason: err}
	}
	return nil, &MailboxError{Field: "host", Message: unknownProblem, Reason: err}
}

// RemoveMailbox removes a mailbox and its secret. Its reports stay.
func (t *Team) RemoveMailbox(ctx context.Context, id dmarcd.MailboxID) error {
	if err := t.may(dmarcd.RightManage); err != nil {
		return err
	}
	return t.team.RemoveMailbox(ctx, id, t.actor.to("mailbox.remove", id.String(), ""))
}

// ResumeMailbox resumes a paused mailbox.
func (t *Team) ResumeMailbox(ctx context.Context, id dmarcd.MailboxID) error {
	if err := t.may(dmarcd.RightManage); err != nil {
		return err
	}
	return t.team.ResumeMailbox(ctx, id, t.actor.to("mailbox.resume", id.String(), ""))
}
