package backend

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/outbound"
	"github.com/dmarcd/dmarcd/internal/web"
)

// mailboxes implements web.Mailboxes.
type mailboxes struct{ desk }

func (m mailboxes) Mailboxes(ctx context.Context) ([]web.Mailbox, error) {
	found, err := m.team.Mailboxes(ctx)
	shown := make([]web.Mailbox, len(found))
	for i, box := range found {
		shown[i] = web.Mailbox{
			ID: box.ID.String(), Host: box.Address(), Username: box.Username,
			Folder: box.Folder, SeenAt: box.SeenAt, Error: m.told(box), ErrorAt: box.ErrorAt, PausedAt: box.PausedAt,
		}
	}
	return shown, err
}

func (m mailboxes) AddMailbox(ctx context.Context, wanted web.NewMailbox) error {
	box, err := newMailbox(wanted)
	if err == nil {
		err = box.Validate()
	}
	if err != nil {
		return atField(err)
	}
	if err := m.try(ctx, box, wanted.Password); err != nil {
		return atField(err)
	}
	return atField(m.options.AddMailbox(ctx, m.team, box, wanted.Password))
}

// newMailbox reads what somebody wrote into the form.
func newMailbox(wanted web.NewMailbox) (dmarcd.Mailbox, error) {
	box := dmarcd.Mailbox{
		Host: strings.TrimSpace(wanted.Server), Security: dmarcd.Security(wanted.Security), Username: strings.TrimSpace(wanted.Username),
		Method: dmarcd.LoginPassword, Folder: wanted.Folder, After: dmarcd.AfterReading(wanted.After),
	}
	if box.After == dmarcd.AfterMove {
		box.MoveTo = wanted.MoveTo
	}
	box.Port = box.Security.Port()
	if host, port, err := net.SplitHostPort(box.Host); err == nil {
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return box, &dmarcd.InvalidError{Field: "port", Message: "A port is a number from 1 to 65535."}
		}
		box.Host, box.Port = host, int(number)
	}
	return box, nil
}

// formFields are the fields of the form by what package dmarcd calls them.
var formFields = map[string]string{"host": "server", "port": "server", "user": "username"}

// atField puts an error about a mailbox at the field of the form that it is about.
func atField(err error) error {
	var invalid *dmarcd.InvalidError
	if !errors.As(err, &invalid) {
		return err
	}
	if field, ok := formFields[invalid.Field]; ok {
		return &dmarcd.InvalidError{Field: field, Message: invalid.Message}
	}
	return err
}

// The server of a mailbox is chosen by the owner of a team, and this machine may
// reach hosts that they cannot. Package outbound refuses addresses that are neither
// public nor allowed by the operator, with one message for all of them. Where the
// operator allows a network, the form must not become a port scanner for it: every
// failure before the server speaks IMAP (nothing listens, a packet filter drops it,
// another protocol) has one message, after one time. The same goes for the list of
// mailboxes, since a name may resolve differently later. A refused login or folder is
// shown: only a mail server does that, and people mistype. Operators see the reason
// in the log, on this page, and with dmarcd mailbox add.

// tryTime is after how long somebody is told that a server cannot be used.
const tryTime = 10 * time.Second

// unreached is all that is told of a server that does not speak IMAP with us.
const unreached = "The server cannot be reached, or does not speak IMAP as it is asked to. Look at its name, port and encryption; an operator finds the reason in the log."

// AddressRefused is shown for a server whose address may not be connected to.
const AddressRefused = "This installation does not connect to private or reserved addresses. An operator can allow its network with DMARCD_OUTBOUND_ALLOW."

// try logs in to a mailbox that a user wants to have read. Each attempt counts for
// the team and the user, and a failed one leaves an entry in the audit log: a mailbox
// form is a way to guess the passwords of others.
func (m mailboxes) try(ctx context.Context, box dmarcd.Mailbox, password string) error {
	team, user := m.id.String(), m.user.String()
	if err := m.mailboxes.Attempt(team, user); err != nil {
		return &dmarcd.InvalidError{Field: "host", Message: err.Error()}
	}
	err := m.logIn(ctx, box, password)
	if err != nil {
		if noted := m.team.NoteFailedLogin(ctx, box, err); noted != nil {
			m.options.Log.ErrorContext(ctx, "audit entry not written", "error", noted, "team", m.id, "user", m.user)
		}
		return err
	}
	m.mailboxes.Succeeded(team, user)
	return nil
}

// logIn logs in to a mailbox, and returns what the user is told of a failure.
func (m mailboxes) logIn(ctx context.Context, box dmarcd.Mailbox, password string) error {
	trying, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	err := m.options.TryMailbox(trying, box, password)
	var invalid *dmarcd.InvalidError
	if err == nil || errors.As(err, &invalid) {
		return err
	}
	m.options.Log.WarnContext(ctx, "mailbox not added", "error", err, "team", m.id, "user", m.user)
	<-trying.Done()
	return &dmarcd.InvalidError{Field: "host", Message: unreached}
}

// told returns what the viewer is told of why a mailbox is not read.
func (m mailboxes) told(box dmarcd.Mailbox) string {
	problem := box.Error
	switch {
	case problem == "" || m.operator || !box.PausedAt.IsZero():
		return problem
	case strings.HasPrefix(problem, m.options.LoginRefused):
		return "The server refuses the login."
	case strings.Contains(problem, outbound.ErrRefused.Error()):
		return AddressRefused
	}
	return unreached
}

func (m mailboxes) RemoveMailbox(ctx context.Context, id string) error {
	parsed, err := dmarcd.ParseMailboxID(id)
	if err != nil {
		return dmarcd.ErrNotFound
	}
	return m.team.RemoveMailbox(ctx, parsed)
}

func (m mailboxes) ResumeMailbox(ctx context.Context, id string) error {
	parsed, err := dmarcd.ParseMailboxID(id)
	if err != nil {
		return dmarcd.ErrNotFound
	}
	return m.team.ResumeMailbox(ctx, parsed)
}
