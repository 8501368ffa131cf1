package service

import (
	"context"

	"github.com/dmarcd/dmarcd"
)

// AddMailbox has a mailbox read, with the secret that its server wants. Whether the
// server lets us in is for the caller to try before.
func (t *Team) AddMailbox(ctx context.Context, mailbox dmarcd.Mailbox, secret []byte) (dmarcd.Mailbox, error) {
	if err := t.may(dmarcd.RightManage); err != nil {
		return dmarcd.Mailbox{}, err
	}
	seal := func(added dmarcd.Mailbox) ([]byte, error) { return t.service.options.Seal(added, secret) }
	return t.team.AddMailbox(ctx, mailbox, seal, t.actor.to("mailbox.add", "", mailbox.Username+" at "+mailbox.Host))
}

// NoteFailedLogin writes into the audit log that a server refused the actor's login: a
// mailbox form is a way to guess the passwords of others.
func (t *Team) NoteFailedLogin(ctx context.Context, mailbox dmarcd.Mailbox, reason error) error {
	if err := t.may(dmarcd.RightManage); err != nil {
		return err
	}
	return t.team.Note(ctx, t.actor.to("mailbox.login_failed", mailbox.Username+" at "+mailbox.Address(), reason.Error()))
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
