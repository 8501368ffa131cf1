package backend

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web"
)

// mailboxes implements web.Mailboxes.
type mailboxes struct{ desk }

func (m mailboxes) Mailboxes(ctx context.Context) ([]web.Mailbox, error) {
	found, err := m.team.Mailboxes(ctx)
	shown := make([]web.Mailbox, len(found))
	for i, box := range found {
		shown[i] = web.Mailbox{
			ID: box.ID.String(), Host: net.JoinHostPort(box.Host, strconv.Itoa(box.Port)), Username: box.Username,
			Folder: box.Folder, SeenAt: box.SeenAt, Error: m.told(box.Error), ErrorAt: box.ErrorAt,
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
	added, err := m.options.AddMailbox(ctx, m.team, box, wanted.Password)
	if err != nil {
		return atField(err)
	}
	m.note(ctx, "mailbox.add", added.ID.String(), added.Username+" at "+added.Host)
	return nil
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

// The server of a mailbox is whatever the owner of a team writes, and this machine
// may reach more than they do: hosts and ports of the network that it stands in. To
// connect only to public addresses would keep out those whose mail server stands in
// the same network, which is common. Instead the form is of no use to find out what is
// there: whatever goes wrong before the server speaks IMAP has one answer, after one
// time, whether nobody listens, a packet filter drops it, or something else than IMAP
// is spoken. The same goes for what the list says of a mailbox later, when its name may
// lead elsewhere. That a login or a folder is refused is told: only a mail server
// does that, and people mistype. Operators find the reason in the log, on this page,
// and by dmarcd mailbox add.

// tryTime is after how long somebody is told that a server cannot be used.
const tryTime = 10 * time.Second

// unreached is all that is told of a server that does not speak IMAP with us.
const unreached = "The server cannot be reached, or does not speak IMAP as it is asked to. Look at its name, port and encryption; an operator finds the reason in the log."

// try logs in to a mailbox that somebody wants to have read.
func (m mailboxes) try(ctx context.Context, box dmarcd.Mailbox, password string) error {
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
func (m mailboxes) told(problem string) string {
	switch {
	case problem == "" || m.operator:
		return problem
	case strings.HasPrefix(problem, m.options.LoginRefused):
		return "The server refuses the login."
	}
	return unreached
}

func (m mailboxes) RemoveMailbox(ctx context.Context, id string) error {
	parsed, err := dmarcd.ParseMailboxID(id)
	if err != nil {
		return dmarcd.ErrNotFound
	}
	if err := m.team.RemoveMailbox(ctx, parsed); err != nil {
		return err
	}
	m.note(ctx, "mailbox.remove", id, "")
	return nil
}
