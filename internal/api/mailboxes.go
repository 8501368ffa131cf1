package api

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

const mailboxExample = `{"host": "imap.example.com", "user": "dmarc@example.com", "password": "secret"}`

// addMailbox logs in to the mailbox first. Its password is in no answer.
func (a *API) addMailbox(c *call) error {
	wanted, err := readMailbox(c)
	if err != nil {
		return err
	}
	answer := a.bodyRead(c.w)
	added, err := c.service.AddMailbox(c.r.Context(), wanted)
	answer()
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusCreated, wire.NewMailbox(added))
}

func readMailbox(c *call) (service.NewMailbox, error) {
	body := readObject(c, "host", mailboxExample)
	given := func(name, standard string) string {
		if !body.states(name) {
			return standard
		}
		return body.text(name)
	}
	m := dmarcd.Mailbox{
		Host: body.text("host"), Security: dmarcd.Security(given("security", string(dmarcd.SecurityTLS))), Username: body.text("user"),
		Method: dmarcd.LoginPassword, Folder: given("folder", "INBOX"), After: dmarcd.AfterReading(given("after", string(dmarcd.AfterFlag))), MoveTo: given("move_to", ""),
	}
	m.Port = m.Security.Port()
	if body.states("port") {
		m.Port = int(min(max(body.number("port"), 0), 1<<16))
	}
	if (m.After == dmarcd.AfterMove) != (m.MoveTo != "") || m.MoveTo != "" && m.MoveTo == m.Folder {
		body.reject("move_to", `The member "move_to" names another folder than the one that mail is read from, with the value "move" of "after" only.`)
	}
	wanted := service.NewMailbox{Mailbox: m}
	switch {
	case body.states("oauth") && body.states("password"):
		body.reject("password", "A mailbox has either a password or OAuth.")
	case body.states("oauth"):
		wanted.Method, wanted.OAuth = dmarcd.LoginOAuth, &service.OAuth{}
		decoder := json.NewDecoder(bytes.NewReader(body.members["oauth"]))
		decoder.DisallowUnknownFields()
		if decoder.Decode(wanted.OAuth) != nil {
			body.reject("oauth", `The member "oauth" must be an object with the members token_url, client_id, client_secret, refresh_token and scopes.`)
		}
	default:
		wanted.Password = body.text("password")
	}
	return wanted, body.err
}

func (a *API) removeMailbox(c *call) error {
	id, err := dmarcd.ParseMailboxID(c.params.Get("id"))
	if err != nil {
		return errNoSuchTeamMailbox
	}
	return c.deleted(c.service.RemoveMailbox(c.r.Context(), id), errNoSuchTeamMailbox)
}
