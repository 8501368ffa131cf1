package web

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/clientaddr"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// client returns the client of the request.
func (c *call) client() service.Client {
	return service.Client{Address: clientaddr.Of(c.r), UserAgent: c.r.UserAgent(), Session: c.cookie(sessionCookie)}
}

type signInView struct {
	Form ui.Form
	Next string
	// Why explains why the user has to sign in again, "" at the first sign-in.
	Why string
	// SingleSignOn links to the identity provider; its text is "" if there is none.
	SingleSignOn ui.Link
}

func (s *Web) newSignInView(next string) signInView {
	v := signInView{Next: next, Form: ui.Form{Path: Prefix + "/sign-in", Method: "post", Submit: "Sign in", Fields: []ui.Field{
		{Name: "email", Label: "Email", Type: "email", Autocomplete: "username", Required: true},
		{Name: "password", Label: "Password", Type: "password", Autocomplete: "current-password", Required: true},
	}}}
	if s.options.Service.SingleSignOn() {
		v.SingleSignOn = ui.Link{Text: "Sign in with " + providerName, Href: ui.WithQuery(Prefix+"/oidc/start", nil, "next", next)}
	}
	return v
}

func signInFrame() Page {
	return Page{Template: "signin", Title: "Sign in", Bare: true}
}

// signInReasons explain why a user has to sign in again, by a word in the URL. Like
// doneMessages they are fixed texts.
var signInReasons = map[string]string{
	"session": "Your session has ended. Sign in to continue.",
	"form":    "Your session has ended, and the form was not sent. Sign in, and send it again.",
}

func (s *Web) signInPage(c *call) error {
	query := c.r.URL.Query()
	view := s.newSignInView(query.Get("next"))
	view.Why = signInReasons[query.Get("why")]
	return c.render(http.StatusOK, signInFrame(), view)
}

func (s *Web) signIn(c *call, form url.Values) error {
	session, err := s.options.Service.SignIn(c.r.Context(), form.Get("email"), form.Get("password"), c.client())
	view := s.newSignInView(form.Get("next"))
	view.Form.Fields[0].Value = form.Get("email")
	switch {
	case errors.Is(err, dmarcd.ErrUnauthorized):
		// The text does not reveal whether the account exists.
		view.Form.Error = "Incorrect email or password. Try again, or ask the operator of this installation for a link to set a new password."
		return c.render(http.StatusUnauthorized, signInFrame(), view)
	case errors.Is(err, dmarcd.ErrLimit):
		view.Form.Error = "Too many attempts. Wait a few minutes, then try again."
		return c.render(http.StatusTooManyRequests, signInFrame(), view)
	case err != nil:
		return err
	}
	s.setSession(c, session)
	return c.redirect(ownPath(form.Get("next")))
}

// signOut is allowed for all users, even without a team.
func (s *Web) signOut(c *call) error {
	if err := s.options.Service.SignOut(c.r.Context(), c.cookie(sessionCookie)); err != nil {
		return err
	}
	s.setSession(c, "")
	return c.redirect(Prefix + "/sign-in")
}

func (s *Web) chooseTeam(c *call, form url.Values) error {
	team, err := dmarcd.ParseTeamID(form.Get("team"))
	if err != nil {
		return dmarcd.ErrNotFound
	}
	return c.finish(c.account.SelectTeam(c.r.Context(), team), Prefix+"/", teamSwitched)
}
