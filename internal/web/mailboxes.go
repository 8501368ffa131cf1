package web

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

func mailboxForm() ui.Form {
	return ui.Form{Path: Prefix + "/settings/mailboxes", Method: "post", Submit: "Add mailbox", Fields: []ui.Field{
		{Name: "server", Label: "Server", Type: "text", Required: true, Placeholder: "imap.example.com", Autocomplete: "off"},
		{Name: "security", Label: "Encryption", Type: "select", Value: "tls", Choices: []ui.Choice{
			{Value: "tls", Label: "TLS"}, {Value: "starttls", Label: "STARTTLS"}, {Value: "none", Label: "none"},
		}},
		{Name: "username", Label: "User name", Type: "text", Required: true, Autocomplete: "off"},
		{Name: "password", Label: "Password", Type: "password", Required: true, Autocomplete: "off", Hint: "It is stored encrypted, and never shown again."},
		{Name: "folder", Label: "Folder", Type: "text", Value: "INBOX", Required: true, Autocomplete: "off"},
		{Name: "after", Label: "After reading", Type: "select", Value: "flag", Choices: []ui.Choice{
			{Value: "keep", Label: "leave the mail as it is"}, {Value: "flag", Label: "mark it as read"}, {Value: "move", Label: "move it"}, {Value: "delete", Label: "delete it"},
		}},
		{Name: "move_to", Label: "Move to", Type: "text", Autocomplete: "off", Hint: "The folder that mail is moved to."},
	}}
}

func (s *Web) mailboxes(c *call) error { return s.showMailboxes(c, http.StatusOK, mailboxForm()) }

func (s *Web) showMailboxes(c *call, status int, form ui.Form) error {
	mailboxes, err := c.team.Mailboxes(c.r.Context())
	if err != nil {
		return err
	}
	return c.settingsList(status, "Mailboxes", mailboxTable(mailboxes, c.viewer.MayOwn()), form, "")
}

func mailboxTable(mailboxes []dmarcd.Mailbox, mayRemove bool) ui.Table {
	t := ui.Table{
		ID: "mailboxes", Caption: "Mailboxes", CSV: Prefix + "/settings/mailboxes?csv=mailboxes",
		Columns: []ui.Column{{Title: "User name", Wide: true}, {Title: "Server"}, {Title: "Folder"}, {Title: "State", Wide: true, Note: "Reason"}, {Title: "Last read"}, {Title: "Actions"}},
		Empty:   ui.Empty{Title: "No mailboxes", Advice: "Reports that are sent to a mailbox elsewhere can be read by IMAP. An owner of the team adds it here.", Action: ui.Link{}},
	}
	for _, m := range mailboxes {
		state := ui.Badge("ok")
		switch {
		case !m.PausedAt.IsZero():
			state = ui.Cell{Kind: ui.CellBadge, Text: "paused", Tone: ui.Tone("error")}.Noted(m.Error)
		case m.Error != "":
			state = ui.Badge("error").Noted(m.Error)
		case m.SeenAt.IsZero():
			state = ui.Cell{Kind: ui.CellBadge, Text: "not read yet", Tone: "info"}
		}
		var buttons []ui.Action
		path := Prefix + "/settings/mailboxes/" + m.ID.String()
		if mayRemove && !m.PausedAt.IsZero() {
			buttons = append(buttons, ui.Action{Label: "Resume", Path: path + "/resume"})
		}
		if mayRemove {
			buttons = append(buttons, ui.Action{
				Label: "Remove", Path: path + "/remove", Danger: true,
				Question: "Remove the mailbox? The mail in it stays where it is.",
			})
		}
		t.Rows = append(t.Rows, []ui.Cell{ui.Text(m.Username), ui.Code(m.Address()), ui.Text(m.Folder), state, ui.At(m.SeenAt), ui.Actions(buttons...)})
	}
	return t
}

func (s *Web) addMailbox(c *call, written url.Values) error {
	mailbox, err := newMailbox(written)
	if err == nil {
		_, err = c.team.AddMailbox(c.r.Context(), service.NewMailbox{Mailbox: mailbox, Password: written.Get("password")})
	}
	if err != nil {
		return again(mailboxForm(), written, atField(err, mailbox), func(form ui.Form) error {
			return s.showMailboxes(c, http.StatusUnprocessableEntity, form)
		})
	}
	return c.done(Prefix+"/settings/mailboxes", "mailbox-added")
}

// newMailbox parses the form. The server is a host, optionally with a port.
func newMailbox(written url.Values) (dmarcd.Mailbox, error) {
	mailbox := dmarcd.Mailbox{
		Host: strings.TrimSpace(written.Get("server")), Security: dmarcd.Security(written.Get("security")),
		Username: strings.TrimSpace(written.Get("username")), Method: dmarcd.LoginPassword,
		Folder: written.Get("folder"), After: dmarcd.AfterReading(written.Get("after")),
	}
	if mailbox.After == dmarcd.AfterMove {
		mailbox.MoveTo = written.Get("move_to")
	}
	mailbox.Port = mailbox.Security.Port()
	if host, port, err := net.SplitHostPort(mailbox.Host); err == nil {
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return mailbox, &dmarcd.InvalidError{Field: "port", Message: "A port is a number from 1 to 65535."}
		}
		mailbox.Host, mailbox.Port = host, int(number)
	}
	return mailbox, nil
}

// mailboxFields maps field names of package dmarcd to those of the form.
var mailboxFields = map[string]string{"host": "server", "port": "server", "user": "username"}

// atField moves an error to its field of the form. The folder to move to is a field of its own.
func atField(err error, wanted dmarcd.Mailbox) error {
	var invalid *dmarcd.InvalidError
	if errors.As(err, &invalid) && invalid.Field == "after" && wanted.After == dmarcd.AfterMove {
		return &dmarcd.InvalidError{Field: "move_to", Message: "Enter a folder other than the one that mail is read from."}
	}
	return renamedField(err, mailboxFields)
}

// renamedField renames the field of an InvalidError to that of the form.
func renamedField(err error, fields map[string]string) error {
	var invalid *dmarcd.InvalidError
	if !errors.As(err, &invalid) {
		return err
	}
	if field, ok := fields[invalid.Field]; ok {
		return &dmarcd.InvalidError{Field: field, Message: invalid.Message}
	}
	return err
}
