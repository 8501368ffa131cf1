package web

import (
	"net/http"
	"net/url"
	"time"
)

// Mailbox is a mailbox that is read by IMAP.
type Mailbox struct {
	ID, Host, Username, Folder string
	// SeenAt is when it was last looked into; zero: not yet.
	SeenAt time.Time
	// Error is what went wrong last, "" where nothing did, at ErrorAt.
	Error   string
	ErrorAt time.Time
	// PausedAt is when reading stopped for the reason in Error; zero: it is read.
	PausedAt time.Time
}

// NewMailbox is a mailbox that somebody wants read.
type NewMailbox struct {
	// Server is a host, with a port where it is not the usual one.
	Server, Security      string
	Username, Password    string
	Folder, After, MoveTo string
}

type mailboxesView struct {
	Tabs   []tab
	Table  Table
	Form   Form
	MayOwn bool
}

func mailboxForm() Form {
	return Form{Path: Prefix + "/settings/mailboxes", Method: "post", Submit: "Add the mailbox", Fields: []Field{
		{Name: "server", Label: "Server", Type: "text", Required: true, Placeholder: "imap.example.com", Autocomplete: "off"},
		{Name: "security", Label: "Encryption", Type: "select", Value: "tls", Choices: []Choice{
			{"tls", "TLS"}, {"starttls", "STARTTLS"}, {"none", "none"},
		}},
		{Name: "username", Label: "User name", Type: "text", Required: true, Autocomplete: "off"},
		{Name: "password", Label: "Password", Type: "password", Required: true, Autocomplete: "off", Hint: "It is kept encrypted, and never shown again."},
		{Name: "folder", Label: "Folder", Type: "text", Value: "INBOX", Required: true, Autocomplete: "off"},
		{Name: "after", Label: "After reading", Type: "select", Value: "flag", Choices: []Choice{
			{"keep", "leave the mail as it is"}, {"flag", "mark it as read"}, {"move", "move it"}, {"delete", "delete it"},
		}},
		{Name: "move_to", Label: "Move to", Type: "text", Autocomplete: "off", Hint: "A folder, where mail is to be moved."},
	}}
}

func (s *Web) mailboxes(c *call) error { return s.showMailboxes(c, http.StatusOK, mailboxForm()) }

func (s *Web) showMailboxes(c *call, status int, form Form) error {
	mailboxes, err := c.team.Mailboxes.Mailboxes(c.r.Context())
	if err != nil {
		return err
	}
	view := mailboxesView{
		Tabs: settingsTabs(c.viewer, "Mailboxes"), Form: form, MayOwn: c.viewer.MayOwn(),
		Table: mailboxTable(mailboxes, c.viewer.MayOwn()),
	}
	if c.wantsCSV("mailboxes") {
		return c.csv(view.Table)
	}
	return c.render(status, settingsFrame("mailboxes", "Mailboxes"), view)
}

func mailboxTable(mailboxes []Mailbox, mayRemove bool) Table {
	t := Table{
		ID: "mailboxes", Caption: "Mailboxes", CSV: Prefix + "/settings/mailboxes?csv=mailboxes",
		Columns: []Column{{Title: "User name", Wide: true}, {Title: "Server"}, {Title: "Folder"}, {Title: "State", Wide: true, Note: "Reason"}, {Title: "Last read"}, {Title: "Actions"}},
		Empty:   Empty{"No mailboxes", "Reports that go to a mailbox elsewhere can be read from there by IMAP. An owner of the team adds it here.", Link{}},
	}
	for _, m := range mailboxes {
		state := badge("ok")
		switch {
		case !m.PausedAt.IsZero():
			state = Cell{Kind: CellBadge, Text: "paused", Tone: tone("error")}.noted(m.Error)
		case m.Error != "":
			state = badge("error").noted(m.Error)
		case m.SeenAt.IsZero():
			state = Cell{Kind: CellBadge, Text: "not read yet", Tone: "info"}
		}
		var buttons []Action
		path := Prefix + "/settings/mailboxes/" + url.PathEscape(m.ID)
		if mayRemove && !m.PausedAt.IsZero() {
			buttons = append(buttons, Action{Label: "Resume", Path: path + "/resume"})
		}
		if mayRemove {
			buttons = append(buttons, Action{
				Label: "Remove", Path: path + "/remove", Danger: true,
				Question: "Remove the mailbox? The mail in it stays where it is.",
			})
		}
		t.Rows = append(t.Rows, []Cell{text(m.Username), code(m.Host), text(m.Folder), state, at(m.SeenAt), actions(buttons...)})
	}
	return t
}

func (s *Web) addMailbox(c *call) error {
	written, err := c.form()
	if err != nil {
		return err
	}
	err = c.team.Mailboxes.AddMailbox(c.r.Context(), NewMailbox{
		Server: written.Get("server"), Security: written.Get("security"), Username: written.Get("username"),
		Password: written.Get("password"), Folder: written.Get("folder"), After: written.Get("after"), MoveTo: written.Get("move_to"),
	})
	if err != nil {
		form, ok := mailboxForm().filled(written, err)
		if !ok {
			return err
		}
		return s.showMailboxes(c, http.StatusUnprocessableEntity, form)
	}
	return c.done(Prefix+"/settings/mailboxes", "mailbox-added")
}

func (s *Web) resumeMailbox(c *call) error {
	if err := c.team.Mailboxes.ResumeMailbox(c.r.Context(), c.params["id"]); err != nil {
		return err
	}
	return c.done(Prefix+"/settings/mailboxes", "mailbox-resumed")
}

func (s *Web) removeMailbox(c *call) error {
	if err := c.team.Mailboxes.RemoveMailbox(c.r.Context(), c.params["id"]); err != nil {
		return err
	}
	return c.done(Prefix+"/settings/mailboxes", "mailbox-removed")
}
