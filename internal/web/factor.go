package web

import (
	"encoding/base64"
	"errors"
	"html/template"
	"net/http"
	"net/url"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// factorView is the part of the account about the second factor.
type factorView struct {
	// Needed means that nothing else is allowed before it is set up.
	Needed, Authenticator bool
	Codes                 string
	SetUp, Remove, Renew  ui.Action
}

func newFactorView(needed bool, f dmarcd.Factors) factorView {
	v := factorView{
		Needed: needed, Authenticator: len(f.TOTP) > 0,
		SetUp: ui.Action{Label: "Set up an authenticator app", Path: accountPath + "/authenticator"},
	}
	if v.Authenticator {
		v.SetUp.Label = "Set up another device"
		v.Remove = ui.Action{Label: "Remove the app", Path: accountPath + "/authenticator/remove", Danger: true, Question: "Remove the authenticator app? All your other sessions end."}
	}
	if f.SecondFactor {
		v.Codes = phrase.Count(int64(f.RecoveryCodes), "recovery code")
		v.Renew = ui.Action{Label: "Create new recovery codes", Path: accountPath + "/recovery", Danger: true, Question: "Create new recovery codes? The old ones stop working."}
	}
	return v
}

// authenticatorView shows what to set up an app with, or new recovery codes.
type authenticatorView struct {
	Image  template.URL
	Secret string
	Form   ui.Form
	Codes  []string
}

func authenticatorForm(secret string) ui.Form {
	return ui.Form{Path: accountPath + "/authenticator/confirm", Method: "post", Submit: "Turn on", Fields: []ui.Field{
		{Name: "secret", Type: "hidden", Value: secret},
		{Name: "code", Label: "Code", Type: "text", Required: true, Autocomplete: "one-time-code", Hint: "The 6 digits that the app shows now."},
	}}
}

func (s *Web) newAuthenticator(c *site.Call) error {
	return showAuthenticator(c, http.StatusOK, "", authenticatorForm)
}

func showAuthenticator(c *site.Call, status int, secret string, form func(secret string) ui.Form) error {
	setup, err := c.Account.NewAuthenticator(secret)
	if err != nil {
		return err
	}
	return c.Render(status, accountFrame("authenticator", "Set up an authenticator app"), authenticatorView{
		Image:  template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(setup.Image)), //nolint:gosec // encoded
		Secret: setup.Secret, Form: form(setup.Secret),
	})
}

func (s *Web) setAuthenticator(c *site.Call, written url.Values) error {
	secret := written.Get("secret")
	codes, err := c.Account.SetAuthenticator(c.R.Context(), secret, written.Get("code"))
	if err != nil {
		return site.Again(authenticatorForm(secret), written, err, func(form ui.Form) error {
			return showAuthenticator(c, http.StatusUnprocessableEntity, secret, func(string) ui.Form { return form })
		})
	}
	return showCodes(c, codes)
}

// showCodes shows recovery codes in its response, because they are not stored.
func showCodes(c *site.Call, codes []string) error {
	return c.Render(http.StatusOK, accountFrame("authenticator", "Recovery codes"), authenticatorView{Codes: codes})
}

func (s *Web) renewRecoveryCodes(c *site.Call) error {
	codes, err := c.Account.RenewRecoveryCodes(c.R.Context())
	if err != nil {
		return err
	}
	return showCodes(c, codes)
}

func (s *Web) removeAuthenticator(c *site.Call) error {
	return c.Finish(c.Account.RemoveAuthenticator(c.R.Context()), accountPath, "app-removed")
}

// requireAction is the button that requires a second factor, or no longer does.
func requireAction(required bool, of, path string) ui.Action {
	if required {
		return ui.Action{Label: "Make it optional", Path: path, Name: "required", Value: "no", Danger: true, Question: "Make the second factor optional for all " + of + "?"}
	}
	return ui.Action{Label: "Require it", Path: path, Name: "required", Value: "yes", Danger: true, Question: "Require a second factor? All " + of + " without one have to set it up before they continue."}
}

func (s *Web) requireOfTeam(c *site.Call, written url.Values) error {
	return c.Finish(c.Team.RequireSecondFactor(c.R.Context(), written.Get("required") == "yes"), Prefix+"/settings/members", "factor-required")
}

func (s *Web) requireOfAll(c *site.Call, written url.Values) error {
	return c.Finish(c.System.RequireSecondFactor(c.R.Context(), written.Get("required") == "yes"), Prefix+"/installation/users", "factor-required")
}

// proved ends a sign-in that only proved who the user is.
func (s *Web) proved(c *site.Call) error {
	return c.Render(http.StatusOK, site.Page{Template: "proved", Title: "Confirmed", Bare: true}, nil)
}

// secondStepCookie stores the state of a sign-in that needs a second factor.
const secondStepCookie = "dmarcd_step"

// signedIn finishes a sign-in: with its session, or by asking for the second factor.
func (s *Web) signedIn(c *site.Call, session string, err error, next string) error {
	var step *service.SecondStep
	if errors.As(err, &step) {
		c.SetCookie(secondStepCookie, step.State)
		return c.Redirect(ui.WithQuery(Prefix+"/sign-in/code", nil, "next", next))
	}
	if err != nil {
		return err
	}
	c.SetSession(session)
	return c.Redirect(site.OwnPath(next))
}

func codeView(next string) signInView {
	return signInView{Title: "Enter your code", Next: next, Form: ui.Form{Path: Prefix + "/sign-in/code", Method: "post", Submit: "Sign in", Fields: []ui.Field{
		{Name: "code", Label: "Code", Type: "text", Autocomplete: "one-time-code", Required: true, Hint: codeHint},
	}}}
}

const codeHint = "From your authenticator app, or one of your recovery codes. If you lost both, an operator can reset them."

func (s *Web) codePage(c *site.Call) error {
	if _, err := s.options.Service.FirstStep(c.R.Context(), c.Cookie(secondStepCookie)); err != nil {
		return s.startAgain(c, err, c.R.URL.Query().Get("next"))
	}
	return c.Render(http.StatusOK, signInFrame(), codeView(c.R.URL.Query().Get("next")))
}

func (s *Web) enterCode(c *site.Call, written url.Values) error {
	next := written.Get("next")
	session, err := s.options.Service.FinishSignIn(c.R.Context(), c.Cookie(secondStepCookie), service.Proof{Code: written.Get("code")}, c.Client())
	view := codeView(next)
	switch {
	case err == nil:
		c.SetCookie(secondStepCookie, "")
	case errors.Is(err, dmarcd.ErrNotFound):
		return s.startAgain(c, err, next)
	case errors.Is(err, dmarcd.ErrUnauthorized):
		view.Form.Error = wrongCode
		return c.Render(http.StatusUnauthorized, signInFrame(), view)
	case errors.Is(err, dmarcd.ErrLimit):
		view.Form.Error = tooManyAttempts
		return c.Render(http.StatusTooManyRequests, signInFrame(), view)
	}
	return s.signedIn(c, session, err, next)
}

const wrongCode = "Incorrect code. Each code works once: wait for the next one, and check the clock of your device."

// startAgain leads to the first step if the second one has no valid state.
func (s *Web) startAgain(c *site.Call, err error, next string) error {
	if !errors.Is(err, dmarcd.ErrNotFound) {
		return err
	}
	c.SetCookie(secondStepCookie, "")
	return c.Redirect(ui.WithQuery(Prefix+"/sign-in", nil, "why", "step", "next", next))
}
