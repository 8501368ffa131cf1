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
	// Passkeys are those of the user. AddPasskey has no label where passkeys cannot be used.
	Passkeys   ui.Table
	AddPasskey ui.Action
}

func newFactorView(needed, passkeys bool, f dmarcd.Factors) factorView {
	v := factorView{
		Needed: needed, Authenticator: len(f.TOTP) > 0, Passkeys: passkeyTable(f.Passkeys),
		SetUp: ui.Action{Label: "Set up an authenticator app", Path: accountPath + "/authenticator"},
	}
	if v.Authenticator {
		v.SetUp.Label = "Set up another device"
		v.Remove = ui.Action{Label: "Remove the app", Path: accountPath + "/authenticator/remove", Danger: true, Question: "Remove the authenticator app? All your other sessions end."}
	}
	if passkeys {
		v.AddPasskey = ui.Action{Label: "Add a passkey", Path: accountPath + "/passkeys/new"}
	}
	if f.SecondFactor {
		v.Codes = phrase.Count(int64(f.RecoveryCodes), "recovery code")
		v.Renew = ui.Action{Label: "Create new recovery codes", Path: accountPath + "/recovery", Danger: true, Question: "Create new recovery codes? The old ones stop working."}
	}
	return v
}

func passkeyTable(passkeys []dmarcd.Passkey) ui.Table {
	t := ui.Table{
		ID: "passkeys", Caption: "Passkeys", CSV: accountPath + "?csv=passkeys",
		Columns: []ui.Column{{Title: "Name", Wide: true}, {Title: "Added"}, {Title: "Last used"}, {Title: "Actions"}},
	}
	for _, p := range passkeys {
		t.Rows = append(t.Rows, []ui.Cell{ui.Text(p.Name), ui.At(p.CreatedAt), ui.At(p.UsedAt), ui.Actions(ui.Action{
			Label: "Remove", Path: accountPath + "/passkeys/" + p.ID.String() + "/remove", Danger: true,
			Question: "Remove the passkey? All your other sessions end.",
		})})
	}
	return t
}

func (s *Web) newPasskey(c *site.Call) error {
	return showPasskey(c, http.StatusOK, newPasskeyForm())
}

func newPasskeyForm() ui.Form {
	return ui.Form{Path: accountPath + "/passkeys", Method: "post", Submit: "Create the passkey", Fields: []ui.Field{
		{Name: "name", Label: "Name", Type: "text", Autocomplete: "off", Placeholder: "Phone", Hint: "To recognize it in the list of your passkeys. Optional."},
	}}
}

// showPasskey shows a form with a new challenge.
func showPasskey(c *site.Call, status int, form ui.Form) error {
	challenge, err := c.Account.NewPasskey(c.R.Context())
	if err != nil {
		return err
	}
	form.Fields = append(form.Fields, c.PasskeyField("passkey", challenge))
	return c.Render(status, accountFrame("passkey", "Add a passkey"), form)
}

func (s *Web) addPasskey(c *site.Call, written url.Values) error {
	codes, err := c.Account.AddPasskey(c.R.Context(), written.Get("name"), c.PasskeyAnswer(written.Get("passkey")))
	switch {
	case err != nil:
		return site.Again(newPasskeyForm(), written, err, func(form ui.Form) error { return showPasskey(c, http.StatusUnprocessableEntity, form) })
	case len(codes) > 0:
		return showCodes(c, codes)
	}
	return c.Done(accountPath, "passkey-added")
}

func (s *Web) removePasskey(c *site.Call, id dmarcd.PasskeyID) error {
	return c.Finish(c.Account.RemovePasskey(c.R.Context(), id), accountPath, "passkey-removed")
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

// codeView is the second step of a sign-in.
func (s *Web) codeView(c *site.Call, of dmarcd.Factors, next string) (signInView, error) {
	challenge, err := s.options.Service.SecondStepPasskey(of)
	return signInView{
		Title: "Confirm that it is you", Next: next, Passkey: passkeyForm(c, Prefix+"/sign-in/code", "Use a passkey", next, challenge),
		Form: ui.Form{Path: Prefix + "/sign-in/code", Method: "post", Submit: "Sign in", Fields: []ui.Field{
			{Name: "code", Label: "Code", Type: "text", Autocomplete: "one-time-code", Required: true, Hint: codeHint},
		}},
	}, err
}

const codeHint = "From your authenticator app, or one of your recovery codes. If you lost all of them, an operator can reset them."

func (s *Web) codePage(c *site.Call) error {
	return s.showCode(c, http.StatusOK, c.R.URL.Query().Get("next"), func(*signInView) {})
}

// showCode renders the second step after edit has added errors.
func (s *Web) showCode(c *site.Call, status int, next string, edit func(*signInView)) error {
	of, err := s.options.Service.FirstStep(c.R.Context(), c.Cookie(secondStepCookie))
	if err != nil {
		return s.startAgain(c, err, next)
	}
	view, err := s.codeView(c, of, next)
	if err != nil {
		return err
	}
	edit(&view)
	return c.Render(status, signInFrame(), view)
}

func (s *Web) enterCode(c *site.Call, written url.Values) error {
	next := written.Get("next")
	proof := service.Proof{Code: written.Get("code")}
	if answer := written.Get("passkey"); answer != "" {
		proof.Passkey = c.PasskeyAnswer(answer)
	}
	session, err := s.options.Service.FinishSignIn(c.R.Context(), c.Cookie(secondStepCookie), proof, c.Client())
	switch {
	case err == nil:
		c.SetCookie(secondStepCookie, "")
	case errors.Is(err, dmarcd.ErrNotFound):
		return s.startAgain(c, err, next)
	case errors.Is(err, dmarcd.ErrUnauthorized) && proof.Passkey.Answer != "":
		return s.showCode(c, http.StatusUnauthorized, next, func(v *signInView) { v.Passkey.Error = wrongPasskey })
	case errors.Is(err, dmarcd.ErrUnauthorized):
		return s.showCode(c, http.StatusUnauthorized, next, func(v *signInView) { v.Form.Error = wrongCode })
	case errors.Is(err, dmarcd.ErrLimit):
		return s.showCode(c, http.StatusTooManyRequests, next, func(v *signInView) { v.Form.Error = tooManyAttempts })
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
