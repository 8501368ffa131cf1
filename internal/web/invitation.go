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

type invitationView struct {
	Invitation service.Invitation
	Form       ui.Form
	// SignIn is the sign-in page, which leads back here.
	SignIn string
}

func invitationFrame() site.Page {
	return site.Page{Template: "invitation", Title: "Invitation", Bare: true}
}

func (s *Web) newInvitationView(path string, invitation service.Invitation) invitationView {
	v := invitationView{
		Invitation: invitation, Form: ui.Form{Path: path, Method: "post", Submit: "Set password and sign in"},
		SignIn: ui.WithQuery(Prefix+"/sign-in", nil, "next", path),
	}
	if invitation.SignedIn != "" {
		v.Form.Submit = "Join team"
		return v
	}
	email := ui.Field{Name: "email", Label: "Email", Type: "email", Value: invitation.Email, Autocomplete: "username", Required: true}
	if invitation.Email != "" {
		email.Hint = "The link is for this address."
	}
	v.Form.Fields = []ui.Field{email}
	if !invitation.Known {
		v.Form.Fields = append(v.Form.Fields, ui.Field{
			Name: "name", Label: "Name", Type: "text", Autocomplete: "name", Hint: "The name that other members see. Optional.",
		})
	}
	v.Form.Fields = append(v.Form.Fields, s.newPasswordField("Password"))
	return v
}

func (s *Web) invitationPage(c *site.Call) error {
	invitation, err := s.options.Service.Invitation(c.R.Context(), c.Params.Get("token"), c.Client())
	if err != nil {
		return invitationError(err)
	}
	return c.Render(http.StatusOK, invitationFrame(), s.newInvitationView(c.R.URL.EscapedPath(), invitation))
}

func (s *Web) acceptInvitation(c *site.Call, form url.Values) error {
	token := c.Params.Get("token")
	invitation, err := s.options.Service.Invitation(c.R.Context(), token, c.Client())
	if err != nil {
		return invitationError(err)
	}
	session, err := s.options.Service.AcceptInvitation(c.R.Context(), token, service.NewAccount{
		Email: form.Get("email"), Name: form.Get("name"), Password: form.Get("password"),
	}, c.Client())
	var step *service.SecondStep
	if err != nil && !errors.As(err, &step) {
		view := s.newInvitationView(c.R.URL.EscapedPath(), invitation)
		if filled, ok := view.Form.Filled(form, err); ok {
			view.Form = filled
			return c.Render(http.StatusUnprocessableEntity, invitationFrame(), view)
		}
		return invitationError(err)
	}
	return s.signedIn(c, session, err, Prefix+"/")
}

// invitationError explains what to do about an invalid link.
func invitationError(err error) error {
	switch {
	case errors.Is(err, dmarcd.ErrNotFound):
		return site.Failure(http.StatusNotFound, "This link cannot be used", "It was used before, was withdrawn, or has expired. Ask an owner of your team for a new one, or create one with `dmarcd user invite`.")
	case errors.Is(err, dmarcd.ErrForbidden):
		return site.Failure(http.StatusForbidden, "This link is for another user", "Sign out, and open the link again.")
	case errors.Is(err, dmarcd.ErrConflict):
		return site.Failure(http.StatusConflict, "You already have an account", "Sign in with it, and open the link again.")
	}
	return err
}
