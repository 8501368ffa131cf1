package service

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/outbound"
)

// The server of a mailbox is chosen by the owner of a team, and this machine may reach
// hosts that they cannot. Package outbound refuses addresses that are neither public nor
// allowed by the operator, with one message for all of them. Where the operator allows a
// network, adding a mailbox must not become a port scanner for it: every failure before
// the server speaks IMAP (nothing listens, a packet filter drops it, another protocol) has
// one message, after one time. The same goes for the list of mailboxes, since a name may
// resolve differently later. A refused login or folder is shown: only a mail server does
// that, and users mistype. Operators find the reason in the log, in the list of mailboxes,
// and with dmarcd mailbox add.
const (
	// tryTime is after how long a user is told that a server cannot be used.
	tryTime = 10 * time.Second
	// unreached is all that is told of a server that does not speak IMAP with us.
	unreached = "The server cannot be reached, or does not speak IMAP as it is asked to. Check its name, port and encryption; an operator finds the reason in the log."
	// addressRefused is told of a server whose address may not be connected to.
	addressRefused = "This installation does not connect to private or reserved addresses. An operator can allow its network with DMARCD_OUTBOUND_ALLOW."
)

// MailboxError is why a mailbox cannot be logged in to. It is an *dmarcd.InvalidError with
// what its user may know, and the reason in full.
type MailboxError struct {
	// Field is that of dmarcd.Mailbox, or "password".
	Field, Message string
	// Reason may show what is at an address: it is for operators.
	Reason error
}

// Error returns the message.
func (e *MailboxError) Error() string { return e.Message }

// Unwrap returns the *dmarcd.InvalidError and the reason.
func (e *MailboxError) Unwrap() []error {
	return []error{&dmarcd.InvalidError{Field: e.Field, Message: e.Message}, e.Reason}
}

// Mailboxes returns the mailboxes without their secrets. Why one is not read is told in
// full to operators alone.
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

// shownProblem returns what users are told of why a mailbox is not read.
func (s *Service) shownProblem(mailbox dmarcd.Mailbox) string {
	problem := mailbox.Error
	switch {
	case problem == "" || !mailbox.PausedAt.IsZero():
		return problem
	case strings.HasPrefix(problem, s.options.LoginRefused):
		return "The server refuses the login."
	case strings.Contains(problem, outbound.ErrRefused.Error()):
		return addressRefused
	}
	return unreached
}

// NewMailbox describes the mailbox to read.
type NewMailbox struct {
	dmarcd.Mailbox
	// Password is what to log in with, where Secret is nil.
	Password string
	// Secret is what to log in with, as Options.TryMailbox and Options.Seal take it.
	Secret []byte
	// Untried adds the mailbox without a login. It is for operators.
	Untried bool
}

// AddMailbox logs in to a mailbox, and has it read from then on. A server that cannot be
// used is a *MailboxError: it is in the audit log, and attempts are throttled by team and
// user, since this is a way to guess the passwords of others.
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
		secret, err = t.service.options.PasswordSecret(wanted.Password)
	}
	if err == nil && !wanted.Untried {
		secret, err = t.tryMailbox(ctx, wanted.Mailbox, secret)
	}
	if err != nil {
		return dmarcd.Mailbox{}, err
	}
	seal := func(added dmarcd.Mailbox) ([]byte, error) { return t.service.options.Seal(added, secret) }
	return t.team.AddMailbox(ctx, wanted.Mailbox, seal, t.actor.to("mailbox.add", "", wanted.Username+" at "+wanted.Host))
}

// tryMailbox logs in to a mailbox, and returns the secret to store.
func (t *Team) tryMailbox(ctx context.Context, mailbox dmarcd.Mailbox, secret []byte) ([]byte, error) {
	team, user := t.team.ID(), t.actor.entry.User
	attempts := t.service.mailboxAttempts
	if err := attempts.Attempt(team.String(), user.String()); err != nil {
		return nil, &dmarcd.InvalidError{Field: "host", Message: err.Error()}
	}
	secret, failed := t.logIn(ctx, mailbox, secret)
	if failed == nil {
		attempts.Succeeded(team.String(), user.String())
		return secret, nil
	}
	log, detail := t.service.options.Log, failed.Message
	if t.actor.local {
		detail = failed.Reason.Error()
	} else {
		log.WarnContext(ctx, "mailbox not added", "error", failed.Reason, "team", team, "user", user)
	}
	entry := t.actor.to("mailbox.login_failed", mailbox.Username+" at "+mailbox.Address(), detail)
	// Clients must not get rid of the entry by leaving.
	if err := t.team.Note(context.WithoutCancel(ctx), entry); err != nil {
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
	secret, err := t.service.options.TryMailbox(ctx, mailbox, secret)
	var known *MailboxError
	switch {
	case err == nil:
		return secret, nil
	case errors.As(err, &known):
		return nil, known
	case errors.Is(err, outbound.ErrRefused):
		return nil, &MailboxError{Field: "host", Message: addressRefused, Reason: err}
	}
	if !t.actor.local {
		<-ctx.Done()
	}
	return nil, &MailboxError{Field: "host", Message: unreached, Reason: err}
}

// RemoveMailbox forgets a mailbox and its secret. The reports that it brought stay.
func (t *Team) RemoveMailbox(ctx context.Context, id dmarcd.MailboxID) error {
	if err := t.may(dmarcd.RightManage); err != nil {
		return err
	}
	return t.team.RemoveMailbox(ctx, id, t.actor.to("mailbox.remove", id.String(), ""))
}

// ResumeMailbox lets a paused mailbox be read again.
func (t *Team) ResumeMailbox(ctx context.Context, id dmarcd.MailboxID) error {
	if err := t.may(dmarcd.RightManage); err != nil {
		return err
	}
	return t.team.ResumeMailbox(ctx, id, t.actor.to("mailbox.resume", id.String(), ""))
}
