package service

import (
	"context"

	"github.com/dmarcd/dmarcd"
)

// TestAddress returns the test address of the user with the results of its mails: one for an hour.
// It is an *dmarcd.InvalidError if this installation does not receive mail itself.
func (t *Team) TestAddress(ctx context.Context) (dmarcd.TestAddress, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return dmarcd.TestAddress{}, err
	}
	if !t.service.options.ReceivesMail {
		return dmarcd.TestAddress{}, &dmarcd.InvalidError{Field: "address", Message: "This server does not receive mail itself. An operator can set DMARCD_SMTP_LISTEN."}
	}
	return t.team.TestAddress(ctx, t.actor.entry.User)
}
