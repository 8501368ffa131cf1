package app

import (
	"context"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/intake/imap"
	"github.com/dmarcd/dmarcd/internal/secret"
)

// pollInterval is the time between looks into a mailbox whose server does not announce new mail:
// reports are about the day before.
const pollInterval = 5 * time.Minute

// mailboxes returns the reader of all mailboxes.
func (a *App) mailboxes() *imap.Service {
	return &imap.Service{
		Leases:    a.store,
		Team:      func(id dmarcd.TeamID) imap.MailboxStore { return a.store.Team(id) },
		Sealer:    secret.File(a.config.Secret.File),
		Accept:    a.acceptMessages,
		MaxBytes:  int64(a.config.Limit.Mail),
		Interval:  pollInterval,
		Folder:    a.acceptor.Limits.Containers.Folder,
		Dial:      a.dialer.DialContext,
		HTTP:      a.dialer.Client(nil),
		Recovered: a.recovered,
		Log:       a.log,
	}
}

// acceptMessages stores messages of a mailbox. After an error some may be stored; they are
// duplicates next time.
func (a *App) acceptMessages(ctx context.Context, mailbox dmarcd.Mailbox, messages []imap.Message) error {
	for len(messages) > 0 {
		n, err := a.acceptSome(ctx, mailbox, messages)
		if err != nil {
			return err
		}
		messages = messages[n:]
	}
	return nil
}

// acceptSome stores the messages up to the first heavy one, and returns their number.
func (a *App) acceptSome(ctx context.Context, mailbox dmarcd.Mailbox, messages []imap.Message) (int, error) {
	var deliveries []*dmarcd.Delivery
	for _, message := range messages {
		opened, err := a.openMessage(ctx, mailbox, message)
		if err != nil {
			return 0, err
		}
		defer opened.Close()
		deliveries = append(deliveries, opened.Delivery)
		if opened.Heavy() {
			break
		}
	}
	_, errs := a.acceptor.StoreAll(ctx, a.store.Team(mailbox.Team), deliveries)
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return len(deliveries), nil
}

func (a *App) openMessage(ctx context.Context, mailbox dmarcd.Mailbox, message imap.Message) (*intake.Opened, error) {
	m := intake.Message{Team: mailbox.Team, Intake: dmarcd.IntakeIMAP, Name: fmt.Sprintf("%s, message %d", mailbox.Folder, message.UID)}
	if message.Body != nil {
		info, err := message.Body.Stat()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", dmarcd.ErrTemporary, err)
		}
		m.Content, m.Size = message.Body, info.Size()
	}
	if message.Rejection != "" {
		return a.acceptor.Reject(ctx, m, message.Rejection)
	}
	m.Verdict = a.verifier().Mail(ctx, message.Body)
	return a.acceptor.Read(ctx, m)
}
