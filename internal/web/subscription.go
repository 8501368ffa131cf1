package web

import (
	"context"
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

// subscription returns the handler of a page about an address that receives mail, or of its form,
// which makes a change. Opening the link changes nothing, because mail servers open links too. The
// form that unsubscribes is also the one-click POST of mail clients (RFC 8058).
func subscription(
	confirm bool, read func(ctx context.Context, token string) (service.Subscription, error), change func(ctx context.Context, token, address string) error,
) func(*call) error {
	return func(c *call) error {
		view := subscriptionView{Path: c.r.URL.EscapedPath(), Confirm: confirm, Done: change != nil}
		var err error
		if change != nil {
			err = change(c.r.Context(), c.params.Get("token"), c.client().Address)
		}
		if err == nil {
			view.Subscription, err = read(c.r.Context(), c.params.Get("token"))
		}
		if errors.Is(err, dmarcd.ErrNotFound) {
			return &failure{http.StatusNotFound, "This link cannot be used", "The address was removed, or the link is incomplete."}
		}
		if err != nil {
			return err
		}
		return c.render(http.StatusOK, Page{Template: "subscription", Title: "Email", Bare: true}, view)
	}
}
