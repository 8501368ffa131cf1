package web

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

type accountView struct {
	User           dmarcd.User
	Name, Password ui.Form
	// Address has no path without a mail relay.
	Address ui.Form
	Factor  factorView
	// Provider is the display name of the identity provider.
	Provider string
	Sessions ui.Table
	// EndOthers ends all other sessions; its label is "" if there are none.
	EndOthers ui.Action
}

const accountPath = Prefix + "/account"

func nameForm(name string) ui.Form {
	return ui.Form{Path: accountPath + "/name", Method: "post", Submit: "Save name", Fields: []ui.Field{
		{Name: "name", Label: "Name", Type: "text", Value: name, Autocomplete: "name", Hint: "The name that other members see. Optional."},
	}}
}

func (s *Web) passwordForm() ui.Form {
	return ui.Form{Path: accountPath + "/password", Method: "post", Submit: "Change password", Fields: []ui.Field{
		{Name: "current", Label: "Current password", Type: "password", Autocomplete: "current-password", Required: true},
		s.newPasswordField("New password"),
	}}
}

func (s *Web) newPasswordField(label string) ui.Field {
	return ui.Field{
		Name: "password", Label: label, Type: "password", Autocomplete: "new-password", Required: true,
		MinLength: s.options.MinPassword, Hint: "At least " + strconv.Itoa(s.options.MinPassword) + " characters. A few words are fine.",
	}
}

func (s *Web) account(c *site.Call) error {
	return s.showAccount(c, http.StatusOK, func(*accountView) {})
}

// showAccount renders the page after edit has added errors.
func (s *Web) showAccount(c *site.Call, status int, edit func(*accountView)) error {
	sessions, err := c.Account.Sessions(c.R.Context())
	if err != nil {
		return err
	}
	factors, err := c.Account.Factors(c.R.Context())
	if err != nil {
		return err
	}
	view := accountView{
		User: c.Account.User, Address: s.addressForm(c.Account.User), Name: nameForm(c.Account.User.Name), Password: s.passwordForm(), Provider: providerName,
		Sessions: sessionTable(sessions), Factor: newFactorView(c.Account.NeedsFactor(), s.options.Service.HasPasskeys(), factors),
	}
	if len(sessions) > 1 {
		view.EndOthers = ui.Action{
			Label: "End all other sessions", Path: accountPath + "/sessions/end", Danger: true,
			Question: "End all other sessions? Those browsers are signed out.",
		}
	}
	edit(&view)
	return c.Render(status, accountFrame("account", "Your account"), view, view.Sessions, view.Factor.Passkeys)
}

func accountFrame(template, title string) site.Page {
	return site.Page{Template: template, Title: title, Section: "Your account"}
}

func sessionTable(sessions []service.AccountSession) ui.Table {
	t := ui.Table{
		ID: "sessions", Caption: "Sessions", CSV: accountPath + "?csv=sessions",
		Columns: []ui.Column{{Title: "Browser", Wide: true, Note: "Which"}, {Title: "Signed in from"}, {Title: "Signed in"}, {Title: "Last seen"}, {Title: "Actions"}},
	}
	for _, session := range sessions {
		browser, last := ui.Text(phrase.Browser(session.UserAgent)), ui.Actions()
		if session.Here {
			browser = browser.Noted("this browser")
		} else {
			last = ui.Actions(ui.Action{
				Label: "End", Path: accountPath + "/sessions/" + session.ID + "/end", Danger: true,
				Question: "End the session? That browser is signed out.",
			})
		}
		t.Rows = append(t.Rows, []ui.Cell{browser, ui.Code(session.Address), ui.At(session.CreatedAt), ui.At(session.SeenAt), last})
	}
	return t
}

func (s *Web) setName(c *site.Call, written url.Values) error {
	err := c.Account.SetName(c.R.Context(), written.Get("name"))
	if err != nil {
		return site.Again(nameForm(""), written, err, func(form ui.Form) error {
			return s.showAccount(c, http.StatusUnprocessableEntity, func(v *accountView) { v.Name = form })
		})
	}
	return c.Done(accountPath, "name-set")
}

func (s *Web) setPassword(c *site.Call, written url.Values) error {
	err := c.Account.SetPassword(c.R.Context(), written.Get("current"), written.Get("password"))
	status := http.StatusUnprocessableEntity
	switch {
	case err == nil:
		return c.Done(accountPath, "password-set")
	case errors.Is(err, dmarcd.ErrForbidden):
		return site.Failure(http.StatusForbidden, "You have no password here", "You sign in with the identity provider. Change the password there.")
	case errors.Is(err, dmarcd.ErrUnauthorized):
		err = &dmarcd.InvalidError{Field: "current", Message: "The current password is incorrect."}
	case errors.Is(err, dmarcd.ErrLimit):
		status, err = http.StatusTooManyRequests, &dmarcd.InvalidError{Message: "Too many attempts. Wait a minute, then try again."}
	}
	return site.Again(s.passwordForm(), written, err, func(form ui.Form) error {
		return s.showAccount(c, status, func(v *accountView) { v.Password = form })
	})
}

func (s *Web) endSession(c *site.Call) error {
	return c.Finish(c.Account.EndSession(c.R.Context(), c.Params.Get("id")), accountPath, "session-ended")
}

func (s *Web) endOtherSessions(c *site.Call) error {
	return c.Finish(c.Account.EndOtherSessions(c.R.Context()), accountPath, "sessions-ended")
}
