package web

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

type signInView struct {
	Form ui.Form
	// Passkey is the form for a passkey; its path is "" for none.
	Passkey ui.Form
	// Title is the heading, "" for that of the first step.
	Title, Next string
	// Why explains why the user has to sign in again, "" at the first sign-in.
	Why string
	// SingleSignOn links to the identity provider; its text is "" if there is none.
	SingleSignOn ui.Link
}

func (s *Web) newSignInView(c *site.Call, next string) (signInView, error) {
	v := signInView{Next: next, Form: ui.Form{Path: Prefix + "/sign-in", Method: "post", Submit: "Sign in", Fields: []ui.Field{
		{Name: "email", Label: "Email", Type: "email", Autocomplete: "username", Required: true},
		{Name: "password", Label: "Password", Type: "password", Autocomplete: "current-password", Required: true},
	}}}
	if s.options.Service.SingleSignOn() {
		v.SingleSignOn = ui.Link{Text: "Sign in with " + providerName, Href: ui.WithQuery(Prefix+"/oidc/start", nil, "next", next)}
	}
	challenge, err := s.options.Service.PasskeySignIn()
	v.Passkey = passkeyForm(c, Prefix+"/sign-in/passkey", "Sign in with a passkey", next, challenge)
	return v, err
}

// passkeyForm returns a form for the answer to a challenge, without a path if there is none.
func passkeyForm(c *site.Call, path, submit, next string, challenge service.Challenge) ui.Form {
	if challenge.Options == "" {
		return ui.Form{}
	}
	return ui.Form{Path: path, Method: "post", Submit: submit, Fields: []ui.Field{
		{Name: "next", Type: "hidden", Value: next}, c.PasskeyField("passkey", challenge),
	}}
}

// signInPasskey signs a user in with a passkey alone.
func (s *Web) signInPasskey(c *site.Call, written url.Values) error {
	next := written.Get("next")
	session, err := s.options.Service.SignInWithPasskey(c.R.Context(), c.PasskeyAnswer(written.Get("passkey")), c.Client())
	if !errors.Is(err, dmarcd.ErrUnauthorized) && !errors.Is(err, dmarcd.ErrLimit) {
		return s.signedIn(c, session, err, next)
	}
	view, failed := s.newSignInView(c, next)
	if failed != nil {
		return failed
	}
	status := http.StatusUnauthorized
	view.Passkey.Error = wrongPasskey
	if errors.Is(err, dmarcd.ErrLimit) {
		status, view.Passkey.Error = http.StatusTooManyRequests, tooManyAttempts
	}
	return c.Render(status, signInFrame(), view)
}

// wrongPasskey does not reveal whether the passkey exists.
const wrongPasskey = "The passkey was not accepted: it is not known here, was removed, or the request took too long or was used before. Try again."

func signInFrame() site.Page {
	return site.Page{Template: "signin", Title: "Sign in", Bare: true}
}

// signInReasons explain why a user has to sign in again, by a word in the URL. Like
// doneMessages they are fixed texts.
var signInReasons = map[string]string{
	"session": "Your session has ended. Sign in to continue.",
	"step":    "The sign-in took too long, or your password has changed. Start again.",
	"reset":   "Your password was changed, and all your sessions were ended. Sign in with it.",
	"form":    "Your session has ended, and the form was not sent. Sign in, and send it again.",
}

func (s *Web) signInPage(c *site.Call) error {
	query := c.R.URL.Query()
	view, err := s.newSignInView(c, query.Get("next"))
	if err != nil {
		return err
	}
	view.Why = signInReasons[query.Get("why")]
	return c.Render(http.StatusOK, signInFrame(), view)
}

func (s *Web) signIn(c *site.Call, form url.Values) error {
	session, err := s.options.Service.SignIn(c.R.Context(), form.Get("email"), form.Get("password"), c.Client())
	if !errors.Is(err, dmarcd.ErrUnauthorized) && !errors.Is(err, dmarcd.ErrLimit) {
		return s.signedIn(c, session, err, form.Get("next"))
	}
	view, failed := s.newSignInView(c, form.Get("next"))
	if failed != nil {
		return failed
	}
	view.Form.Fields[0].Value = form.Get("email")
	if errors.Is(err, dmarcd.ErrLimit) {
		view.Form.Error = tooManyAttempts
		return c.Render(http.StatusTooManyRequests, signInFrame(), view)
	}
	// The text does not reveal whether the account exists.
	view.Form.Error = "Incorrect email or password. Try again, or set a new password."
	return c.Render(http.StatusUnauthorized, signInFrame(), view)
}

const tooManyAttempts = "Too many attempts. Wait a few minutes, then try again."

// signOut is allowed for all users, even without a team.
func (s *Web) signOut(c *site.Call) error {
	if err := s.options.Service.SignOut(c.R.Context(), c.Client()); err != nil {
		return err
	}
	c.SetSession("")
	return c.Redirect(Prefix + "/sign-in")
}

// providerName stands for the identity provider: there is at most one.
const providerName = "single sign-on"

// singleSignOnCookie stores the state of a sign-in at the identity provider.
const singleSignOnCookie = "dmarcd_oidc"

func (s *Web) startSingleSignOn(c *site.Call) error {
	if !s.options.Service.SingleSignOn() {
		return site.ErrNoSuchPage
	}
	location, state, err := s.options.Service.BeginSingleSignOn(c.R.Context(), site.OwnPath(c.R.URL.Query().Get("next")))
	if err != nil {
		return singleSignOnError(err)
	}
	c.SetCookie(singleSignOnCookie, state)
	return c.Redirect(location)
}

func (s *Web) finishSingleSignOn(c *site.Call) error {
	if !s.options.Service.SingleSignOn() {
		return site.ErrNoSuchPage
	}
	state := c.Cookie(singleSignOnCookie)
	c.SetCookie(singleSignOnCookie, "") // valid for one sign-in
	session, next, err := s.options.Service.FinishSingleSignOn(c.R.Context(), state, c.R.URL.Query(), c.Client())
	var step *service.SecondStep
	if err != nil && !errors.As(err, &step) {
		// The page shows what to do, the log contains the reason.
		s.options.Log.WarnContext(c.R.Context(), "sign-in by the identity provider refused", "error", err)
		return singleSignOnError(err)
	}
	return s.signedIn(c, session, err, next)
}

// endProviderSessions answers the identity provider (OpenID Connect Back-Channel Logout 1.0 §2.8).
func (s *Web) endProviderSessions(c *site.Call, form url.Values) error {
	if !s.options.Service.SingleSignOn() {
		return site.ErrNoSuchPage
	}
	err := s.options.Service.EndProviderSessions(c.R.Context(), form.Get("logout_token"), c.Client())
	c.W.Header().Set("Cache-Control", "no-store")
	if err == nil {
		c.W.WriteHeader(http.StatusOK)
		return nil
	}
	s.options.Log.WarnContext(c.R.Context(), "logout by the identity provider rejected", "error", err)
	if errors.Is(err, dmarcd.ErrUnauthorized) {
		return site.Failure(http.StatusBadRequest, "The logout token was not accepted", "It is not valid, has expired, or was used before. Nothing was changed.")
	}
	return err
}

// singleSignOnError explains what to do next.
func singleSignOnError(err error) error {
	switch {
	case errors.Is(err, dmarcd.ErrUnauthorized):
		return site.Failure(http.StatusUnauthorized, "The sign-in was not completed", "The identity provider did not confirm it, or it took too long. Go back to the sign-in page, and try again.")
	case errors.Is(err, dmarcd.ErrForbidden):
		return site.Failure(http.StatusForbidden, "Your email address is not verified", "The identity provider has not verified your address. Verify it there, then try again.")
	case errors.Is(err, dmarcd.ErrNotFound):
		return site.Failure(http.StatusForbidden, "You have not been invited", "Ask an owner of a team to invite your email address, then sign in again.")
	case errors.Is(err, dmarcd.ErrTemporary):
		return site.Failure(http.StatusServiceUnavailable, "The identity provider cannot be reached", "Try again in a minute, or sign in with a password.")
	}
	return err
}
