package site

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// The fields of a proof, in addition to those of the form that needs it.
const (
	proofPassword = "proof-password"
	proofCode     = "proof-code"
	proofPasskey  = "proof-passkey"
)

type proofView struct {
	// Form has the hidden fields of the form that needs the proof, and the field to prove with, if any.
	Form ui.Form
	// Passkey is the same form for a passkey; its path is "" if the user has none.
	Passkey ui.Form
	// Back is the page with that form.
	Back string
	// SingleSignOn opens the identity provider in another tab; its text is "" if that proves nothing.
	SingleSignOn ui.Link
}

// handleProved runs the handler of a route after a fresh proof. Without one it asks for it, with what the
// form contains, so that the proof sends the form again.
func (c *Call) handleProved(matched *Route) error {
	return WithForm(func(c *Call, written url.Values) error {
		proof := service.Proof{Password: written.Get(proofPassword), Code: written.Get(proofCode)}
		written.Del(proofPassword)
		if answer := written.Get(proofPasskey); answer != "" {
			proof.Passkey = c.PasskeyAnswer(answer)
		}
		written.Del(proofCode)
		written.Del(proofPasskey)
		if c.Account.Fresh() {
			return c.handle(matched)
		}
		if proof == (service.Proof{}) {
			return c.askProof(http.StatusForbidden, written, "")
		}
		err := c.Account.Prove(c.R.Context(), proof)
		switch {
		case errors.Is(err, dmarcd.ErrUnauthorized):
			return c.askProof(http.StatusForbidden, written, "That is incorrect, was used before, or took too long. Nothing was changed yet.")
		case errors.Is(err, dmarcd.ErrLimit):
			return c.askProof(http.StatusTooManyRequests, written, "Too many attempts. Wait a few minutes, then try again.")
		case err != nil:
			return err
		}
		return c.handle(matched)
	})(c)
}

func (c *Call) askProof(status int, written url.Values, problem string) error {
	factors, err := c.Account.Factors(c.R.Context())
	if err != nil {
		return err
	}
	view := proofView{Back: c.referer(), Form: ui.Form{Path: c.R.URL.RequestURI(), Method: "post", Submit: "Continue", Error: problem}}
	for _, name := range slices.Sorted(maps.Keys(written)) {
		for _, value := range written[name] {
			view.Form.Fields = append(view.Form.Fields, ui.Field{Type: "hidden", Name: name, Value: value})
		}
	}
	challenge, err := c.Account.AskPasskey(factors)
	if err != nil {
		return err
	}
	if challenge.Options != "" {
		view.Passkey = view.Form
		view.Passkey.Submit, view.Passkey.Error = "Use a passkey", ""
		view.Passkey.Fields = append(slices.Clone(view.Form.Fields), c.PasskeyField(proofPasskey, challenge))
	}
	single := c.site.options.Service.SingleSignOn() && !factors.SecondFactor
	if single {
		view.SingleSignOn = ui.Link{Text: "Confirm with single sign-on", Href: ui.WithQuery(Prefix+"/oidc/start", nil, "next", service.ProvedPath)}
	}
	switch {
	case factors.SecondFactor:
		view.Form.Fields = append(view.Form.Fields, ui.Field{
			Name: proofCode, Label: "Code", Type: "text", Autocomplete: "one-time-code", Required: true, Hint: "From your authenticator app, or one of your recovery codes.",
		})
	case factors.Password:
		view.Form.Fields = append(view.Form.Fields, ui.Field{Name: proofPassword, Label: "Password", Type: "password", Autocomplete: "current-password", Required: !single})
	case !single && view.Form.Error == "":
		view.Form.Error = "You have nothing to prove it with. Ask an operator for a link to set a password."
	}
	return c.Render(status, Page{Template: "proof", Title: "Confirm that it is you"}, view)
}
