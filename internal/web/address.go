package web

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

const addressPath = accountPath + "/address"

func (s *Web) addressForm(user dmarcd.User) ui.Form {
	if !s.options.Service.SendsMail() {
		return ui.Form{}
	}
	return ui.Form{Path: addressPath, Method: "post", Submit: "Send a link", Fields: []ui.Field{{
		Name: "email", Label: "Email", Type: "email", Value: user.Email, Autocomplete: "email", Required: true,
		Hint: "To confirm this address, or another one that you want to use, we send a link to it.",
	}}}
}

func (s *Web) setAddress(c *site.Call, written url.Values) error {
	err := c.Account.SetEmail(c.R.Context(), written.Get("email"))
	if err != nil {
		return site.Again(s.addressForm(c.Account.User), written, err, func(form ui.Form) error {
			return s.showAccount(c, http.StatusUnprocessableEntity, func(v *accountView) { v.Address = form })
		})
	}
	return c.Done(accountPath, "address-asked")
}

// addressView asks whether to use an address.
type addressView struct {
	Email, Before string
	Form          ui.Form
}

func (s *Web) addressPage(c *site.Call) error {
	email, err := c.Account.ConfirmableAddress(c.R.Context(), c.Params.Get("token"))
	if err != nil {
		return addressError(err)
	}
	return c.Render(http.StatusOK, accountFrame("address", "Confirm your address"), addressView{
		Email: email, Before: c.Account.User.Email, Form: ui.Form{Path: c.R.URL.EscapedPath(), Method: "post", Submit: "Confirm the address"},
	})
}

func (s *Web) confirmAddress(c *site.Call) error {
	return c.Finish(addressError(c.Account.ConfirmAddress(c.R.Context(), c.Params.Get("token"))), accountPath, "address-set")
}

// addressError explains what to do about a link that cannot be used.
func addressError(err error) error {
	switch {
	case errors.Is(err, dmarcd.ErrNotFound):
		return site.Failure(http.StatusNotFound, "This link cannot be used", "It was used before, has expired, or is for another user. Sign in as the user who asked for it, or ask for another link on the page Your account.")
	case errors.Is(err, dmarcd.ErrConflict):
		return site.Failure(http.StatusConflict, "Another account has this address", "Sign in with that account, or ask its user to change the address first.")
	}
	return err
}
