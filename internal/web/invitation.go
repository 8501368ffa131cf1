package web

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

type invitationView struct {
	Invitation service.Invitation
	Form       ui.Form
	// SignIn is the sign-in page, which leads back here.
	SignIn string
}

func invitationFrame() Page {
	return Page{Template: "invitation", Title: "Invitation", Bare: true}
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

func (s *Web) invitationPage(c *call) error {
	invitation, err := s.options.Service.Invitation(c.r.Context(), c.params.Get("token"), c.client())
	if err != nil {
		return invitationError(err)
	}
	return c.render(http.StatusOK, invitationFrame(), s.newInvitationView(c.r.URL.EscapedPath(), invitation))
}

func (s *Web) acceptInvitation(c *call, form url.Values) error {
	token := c.params.Get("token")
	invitation, err := s.options.Service.Invitation(c.r.Context(), token, c.client())
	if err != nil {
		return invitationError(err)
	}
	session, err := s.options.Service.AcceptInvitation(c.r.Context(), token, service.NewAccount{
		Email: form.Get("email"), Name: form.Get("name"), Password: form.Get("password"),
	}, c.client())
	if err != nil {
		view := s.newInvitationView(c.r.URL.EscapedPath(), invitation)
		if filled, ok := view.Form.Filled(form, err); ok {
			view.Form = filled
			return c.render(http.StatusUnprocessableEntity, invitationFrame(), view)
		}
		return invitationError(err)
	}
	s.setSession(c, session)
	return c.redirect(Prefix + "/")
}

// invitationError explains what to do about an invalid link.
func invitationError(err error) error {
	switch {
	case errors.Is(err, dmarcd.ErrNotFound):
		return &failure{http.StatusNotFound, "This link cannot be used", "It was already used, was withdrawn, or has expired. Ask an owner of your team for a new one, or create one with `dmarcd user invite`."}
	case errors.Is(err, dmarcd.ErrForbidden):
		return &failure{http.StatusForbidden, "This link is for another user", "Sign out, and open the link again."}
	case errors.Is(err, dmarcd.ErrConflict):
		return &failure{http.StatusConflict, "You already have an account", "Sign in with it, and open the link again."}
	}
	return err
}
