package web

import (
	"errors"
	"net/http"

	"github.com/dmarcd/dmarcd"
)

// singleSignOnCookie stores the state of a sign-in at the identity provider.
const singleSignOnCookie = "dmarcd_oidc"

func (s *Web) startSingleSignOn(c *call) error {
	if !s.options.Service.SingleSignOn() {
		return errNoSuchPage
	}
	location, state, err := s.options.Service.BeginSingleSignOn(c.r.Context(), ownPath(c.r.URL.Query().Get("next")))
	if err != nil {
		return singleSignOnError(err)
	}
	s.setCookie(c, singleSignOnCookie, state)
	return c.redirect(location)
}

func (s *Web) finishSingleSignOn(c *call) error {
	if !s.options.Service.SingleSignOn() {
		return errNoSuchPage
	}
	state := c.cookie(singleSignOnCookie)
	s.setCookie(c, singleSignOnCookie, "") // valid for one sign-in
	session, next, err := s.options.Service.FinishSingleSignOn(c.r.Context(), state, c.r.URL.Query(), c.client())
	if err != nil {
		// The page shows what to do, the log contains the reason.
		s.options.Log.WarnContext(c.r.Context(), "sign-in by the identity provider refused", "error", err)
		return singleSignOnError(err)
	}
	s.setSession(c, session)
	return c.redirect(ownPath(next))
}

// singleSignOnError explains what to do next.
func singleSignOnError(err error) error {
	switch {
	case errors.Is(err, dmarcd.ErrUnauthorized):
		return &failure{http.StatusUnauthorized, "The sign-in was not completed", "The identity provider did not confirm it, or it took too long. Go back to the sign-in page, and try again."}
	case errors.Is(err, dmarcd.ErrForbidden):
		return &failure{http.StatusForbidden, "Your email address is not verified", "The identity provider has not verified your address. Verify it there, then try again."}
	case errors.Is(err, dmarcd.ErrNotFound):
		return &failure{http.StatusForbidden, "You have not been invited", "Ask an owner of a team to invite your email address, then sign in again."}
	case errors.Is(err, dmarcd.ErrTemporary):
		return &failure{http.StatusServiceUnavailable, "The identity provider cannot be reached", "Try again in a minute, or sign in with a password."}
	}
	return err
}
