package backend

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
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
			Folder: box.Folder, SeenAt: box.SeenAt, Error: box.Error, ErrorAt: box.ErrorAt, PausedAt: box.PausedAt,
		}
	}
	return shown, err
}

func (m mailboxes) AddMailbox(ctx context.Context, wanted web.NewMailbox) error {
	box, err := newMailbox(wanted)
	if err == nil {
		_, err = m.team.AddMailbox(ctx, service.NewMailbox{Mailbox: box, Password: wanted.Password})
	}
	return atField(err)
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
