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
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

const mailboxesPath = Prefix + "/settings/mailboxes"

// mailboxForm is the form for a mailbox with a method to sign in.
func mailboxForm(method dmarcd.LoginMethod) ui.Form {
	text := func(name, label, placeholder, hint string) ui.Field {
		return ui.Field{Name: name, Label: label, Type: "text", Required: true, Autocomplete: "off", Placeholder: placeholder, Hint: hint}
	}
	secret := func(name, label, hint string) ui.Field {
		return ui.Field{Name: name, Label: label, Type: "password", Autocomplete: "off", Hint: hint}
	}
	const stored = "It is stored encrypted, and never shown again."
	fields := []ui.Field{
		{Name: "method", Type: "hidden", Value: string(method)},
		text("server", "Server", "imap.example.com", "With a port, if it is not the usual one: imap.example.com:1993."),
		{Name: "security", Label: "Encryption", Type: "select", Value: "tls", Choices: []ui.Choice{
			{Value: "tls", Label: "TLS (port 993)"}, {Value: "starttls", Label: "STARTTLS (port 143)"}, {Value: "none", Label: "none (port 143)"},
		}},
		text("username", "User name", "dmarc@example.com", ""),
	}
	if method == dmarcd.LoginOAuth {
		scopes := text("scopes", "Scopes", "", "Separate with spaces. Microsoft 365: https://outlook.office365.com/.default. Gmail: https://mail.google.com/.")
		scopes.Required = false
		fields = append(fields,
			text("token_url", "Token URL", "https://…", "Microsoft 365: https://login.microsoftonline.com/TENANT/oauth2/v2.0/token. Gmail: https://oauth2.googleapis.com/token."),
			text("client_id", "Client ID", "", "Of the application that is registered with the provider."),
			secret("client_secret", "Client secret", stored+" Leave empty if the application has none."),
			secret("refresh_token", "Refresh token", stored+" Leave empty to sign in as the application, with client credentials."),
			scopes,
		)
	} else {
		password := secret("password", "Password", stored)
		password.Required = true
		fields = append(fields, password)
	}
	return ui.Form{Path: mailboxesPath, Method: "post", Submit: "Test and add mailbox", Fields: append(fields,
		ui.Field{Name: "folder", Label: "Folder", Type: "text", Value: "INBOX", Required: true, Autocomplete: "off"},
		ui.Field{Name: "after", Label: "After reading", Type: "select", Value: "flag", Choices: []ui.Choice{
			{Value: "keep", Label: "leave the mail as it is"}, {Value: "flag", Label: "mark it as read"}, {Value: "move", Label: "move it"}, {Value: "delete", Label: "delete it"},
		}},
		ui.Field{Name: "move_to", Label: "Move to", Type: "text", Autocomplete: "off", Hint: "The folder that mail is moved to."},
	)}
}

// methodOf returns the method to sign in that is asked for, by default a password.
func methodOf(query url.Values) dmarcd.LoginMethod {
	if dmarcd.LoginMethod(query.Get("method")) == dmarcd.LoginOAuth {
		return dmarcd.LoginOAuth
	}
	return dmarcd.LoginPassword
}

type mailboxesView struct {
	Tabs  []ui.Tab
	Table ui.Table
	Form  ui.Form
	// Methods are links to the forms of each method to sign in.
	Methods []ui.Tab
}

func (s *Web) mailboxes(c *site.Call) error {
	method := methodOf(c.R.URL.Query())
	return s.showMailboxes(c, http.StatusOK, method, mailboxForm(method))
}

func (s *Web) showMailboxes(c *site.Call, status int, method dmarcd.LoginMethod, form ui.Form) error {
	mailboxes, err := c.Team.Mailboxes(c.R.Context())
	if err != nil {
		return err
	}
	view := mailboxesView{Tabs: settingsTabs(c.Viewer, "Mailboxes"), Table: mailboxTable(mailboxes, c.Viewer.MayOwn()), Form: form, Methods: []ui.Tab{
		{Link: ui.Link{Text: "Password", Href: mailboxesPath + "#add"}, Current: method == dmarcd.LoginPassword},
		{Link: ui.Link{Text: "OAuth (Microsoft 365, Gmail)", Href: mailboxesPath + "?method=oauth#add"}, Current: method == dmarcd.LoginOAuth},
	}}
	return c.Render(status, settingsFrame("mailboxes", "Mailboxes"), view, view.Table)
}

func mailboxTable(mailboxes []dmarcd.Mailbox, mayRemove bool) ui.Table {
	t := ui.Table{
		ID: "mailboxes", Caption: "Mailboxes", CSV: mailboxesPath + "?csv=mailboxes",
		Columns: []ui.Column{{Title: "User name", Wide: true}, {Title: "Server"}, {Title: "Folder"}, {Title: "State", Wide: true, Note: "Reason"}, {Title: "Last read"}, {Title: "Actions"}},
		Empty:   ui.Empty{Title: "No mailboxes", Advice: "Reports that are sent to a mailbox elsewhere can be read by IMAP. An owner of the team adds it here.", Action: ui.Link{}},
	}
	for _, m := range mailboxes {
		state := ui.Badge("ok")
		switch {
		case !m.PausedAt.IsZero():
			state = ui.Cell{Kind: ui.CellBadge, Text: "paused", Tone: ui.Tone("error")}.Noted(m.Error)
		case m.Error != "":
			state = ui.Cell{Kind: ui.CellBadge, Text: "failing", Tone: ui.Tone("error")}.Noted(m.Error)
		case m.SeenAt.IsZero():
			state = ui.Cell{Kind: ui.CellBadge, Text: "not read yet", Tone: "info"}
		}
		var buttons []ui.Action
		path := mailboxesPath + "/" + m.ID.String()
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

// addMailbox tests the mailbox, and adds it if that succeeds.
func (s *Web) addMailbox(c *site.Call, written url.Values) error {
	mailbox, err := newMailbox(written)
	if err == nil {
		wanted := service.NewMailbox{Mailbox: mailbox, Password: written.Get("password")}
		if mailbox.Method == dmarcd.LoginOAuth {
			wanted.OAuth = &service.OAuth{
				TokenURL: strings.TrimSpace(written.Get("token_url")), ClientID: strings.TrimSpace(written.Get("client_id")),
				ClientSecret: written.Get("client_secret"), RefreshToken: written.Get("refresh_token"), Scopes: strings.Fields(written.Get("scopes")),
			}
		}
		_, err = c.Team.AddMailbox(c.R.Context(), wanted)
	}
	if err != nil {
		return site.Again(mailboxForm(mailbox.Method), written, atField(err, mailbox), func(form ui.Form) error {
			return s.showMailboxes(c, http.StatusUnprocessableEntity, mailbox.Method, form)
		})
	}
	return c.Done(mailboxesPath, "mailbox-added")
}

// newMailbox parses the form. The server is a host, optionally with a port.
func newMailbox(written url.Values) (dmarcd.Mailbox, error) {
	mailbox := dmarcd.Mailbox{
		Host: strings.TrimSpace(written.Get("server")), Security: dmarcd.Security(written.Get("security")),
		Username: strings.TrimSpace(written.Get("username")), Method: methodOf(written),
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

// mailboxFields maps field names of package dmarcd to field names of the form.
var mailboxFields = map[string]string{"host": "server", "port": "server", "user": "username"}

// atField moves an error to its field of the form. A wrong target folder is an error of move_to.
func atField(err error, wanted dmarcd.Mailbox) error {
	var invalid *dmarcd.InvalidError
	if errors.As(err, &invalid) && invalid.Field == "after" && wanted.After == dmarcd.AfterMove {
		return &dmarcd.InvalidError{Field: "move_to", Message: "Enter a folder other than the one that mail is read from."}
	}
	return renamedField(err, mailboxFields)
}
