package web

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// resetView is about a forgotten password.
type resetView struct {
	// Sends is false without a mail relay.
	Sends bool
	// Sent is true after the form for a link, Form that form, or the one for the password of Email.
	Sent  bool
	Email string
	Form  ui.Form
}

const resetPath = Prefix + "/reset"

func resetFrame() site.Page {
	return site.Page{Template: "reset", Title: "Set a new password", Bare: true}
}

func (s *Web) newForgotView() resetView {
	return resetView{Sends: s.options.Service.SendsMail(), Form: ui.Form{Path: resetPath, Method: "post", Submit: "Send the link", Fields: []ui.Field{
		{Name: "email", Label: "Email", Type: "email", Autocomplete: "username", Required: true},
	}}}
}

func (s *Web) forgotPage(c *site.Call) error {
	return c.Render(http.StatusOK, resetFrame(), s.newForgotView())
}

// forgotPassword answers the same for all addresses.
func (s *Web) forgotPassword(c *site.Call, written url.Values) error {
	view := s.newForgotView()
	status := http.StatusOK
	switch err := s.options.Service.ForgotPassword(c.R.Context(), written.Get("email"), c.Client()); {
	case err == nil:
		view.Sent = true
	case errors.Is(err, dmarcd.ErrNotFound): // there is no relay
		status = http.StatusNotFound
	case errors.Is(err, dmarcd.ErrLimit):
		status = http.StatusTooManyRequests
		view.Form, _ = view.Form.Filled(written, &dmarcd.InvalidError{Message: tooManyAttempts})
	default:
		return site.Again(view.Form, written, err, func(form ui.Form) error {
			view.Form = form
			return c.Render(http.StatusUnprocessableEntity, resetFrame(), view)
		})
	}
	return c.Render(status, resetFrame(), view)
}

func (s *Web) newResetView(c *site.Call) (resetView, error) {
	email, err := s.options.Service.ResettableUser(c.R.Context(), c.Params.Get("token"))
	return resetView{Email: email, Form: ui.Form{
		Path: c.R.URL.EscapedPath(), Method: "post", Submit: "Set the password", Fields: []ui.Field{s.newPasswordField("New password")},
	}}, resetError(err)
}

func (s *Web) resetPage(c *site.Call) error {
	view, err := s.newResetView(c)
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, resetFrame(), view)
}

func (s *Web) resetPassword(c *site.Call, written url.Values) error {
	err := s.options.Service.ResetPassword(c.R.Context(), c.Params.Get("token"), written.Get("password"), c.Client())
	if err == nil {
		c.SetSession("")
		return c.Redirect(Prefix + "/sign-in?why=reset")
	}
	var invalid *dmarcd.InvalidError
	if !errors.As(err, &invalid) {
		return resetError(err)
	}
	view, failed := s.newResetView(c)
	if failed != nil {
		return failed
	}
	view.Form, _ = view.Form.Filled(written, err)
	return c.Render(http.StatusUnprocessableEntity, resetFrame(), view)
}

// resetError explains what to do about a link that cannot be used.
func resetError(err error) error {
	if errors.Is(err, dmarcd.ErrNotFound) {
		return site.Failure(http.StatusNotFound, "This link cannot be used", "It was used before, has expired, or the password was changed since. Ask for another link on the sign-in page.")
	}
	return err
}
