package web

import (
	"errors"
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
)

type subscriptionView struct {
	service.Subscription
	// Path receives the form.
	Path string
	// Confirm means that the page confirms an address.
	Confirm bool
	// Done means that the form was accepted.
	Done bool
}

func (c *call) showSubscription(subscription service.Subscription, confirm, done bool, err error) error {
	if errors.Is(err, dmarcd.ErrNotFound) {
		return &failure{http.StatusNotFound, "This link cannot be used", "The address was removed, or the link is incomplete."}
	}
	if err != nil {
		return err
	}
	page := Page{Template: "subscription", Title: "Email", Bare: true}
	return c.render(http.StatusOK, page, subscriptionView{Subscription: subscription, Path: c.r.URL.EscapedPath(), Confirm: confirm, Done: done})
}

// confirmPage asks whether to send mail. Opening the link changes nothing, because mail
// servers open links too.
func (s *Web) confirmPage(c *call) error {
	found, err := s.options.Service.ConfirmableSubscription(c.r.Context(), c.params.Get("token"))
	return c.showSubscription(found, true, false, err)
}

func (s *Web) confirm(c *call) error {
	err := s.options.Service.Confirm(c.r.Context(), c.params.Get("token"), c.client().Address)
	var found service.Subscription
	if err == nil {
		found, err = s.options.Service.ConfirmableSubscription(c.r.Context(), c.params.Get("token"))
	}
	return c.showSubscription(found, true, true, err)
}

func (s *Web) unsubscribePage(c *call) error {
	found, err := s.options.Service.Subscription(c.r.Context(), c.params.Get("token"))
	return c.showSubscription(found, false, false, err)
}

// unsubscribe handles the form of the page, and the one-click POST of mail clients (RFC
// 8058).
func (s *Web) unsubscribe(c *call) error {
	err := s.options.Service.Unsubscribe(c.r.Context(), c.params.Get("token"), c.client().Address)
	var found service.Subscription
	if err == nil {
		found, err = s.options.Service.Subscription(c.r.Context(), c.params.Get("token"))
	}
	return c.showSubscription(found, false, true, err)
}
