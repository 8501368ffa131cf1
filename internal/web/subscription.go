package web

import (
	"context"
	"errors"
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
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

// subscription returns the handler of a page about a subscribed address or, with change, of its
// form. Opening the link changes nothing, because mail servers open links too. Mail clients post
// the form to unsubscribe with one click (RFC 8058).
func subscription(
	confirm bool, read func(ctx context.Context, token string) (service.Subscription, error), change func(ctx context.Context, token, address string) error,
) func(*site.Call) error {
	return func(c *site.Call) error {
		view := subscriptionView{Path: c.R.URL.EscapedPath(), Confirm: confirm, Done: change != nil}
		var err error
		if change != nil {
			err = change(c.R.Context(), c.Params.Get("token"), c.Client().Address)
		}
		if err == nil {
			view.Subscription, err = read(c.R.Context(), c.Params.Get("token"))
		}
		if errors.Is(err, dmarcd.ErrNotFound) {
			return site.Failure(http.StatusNotFound, "This link cannot be used", "The address was removed, or the link is incomplete.")
		}
		if err != nil {
			return err
		}
		return c.Render(http.StatusOK, site.Page{Template: "subscription", Title: "Email", Bare: true}, view)
	}
}
