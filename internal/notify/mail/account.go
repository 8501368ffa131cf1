package mail

import (
	"context"
	"time"

	"github.com/dmarcd/dmarcd/internal/phrase"
)

// SendOnce sends a message to a user, which is not retried. about is the left part of its id.
func (r *Relay) SendOnce(ctx context.Context, to, about string, content Content) error {
	return r.sendOnce(ctx, to, about, content)
}

// PasswordReset has a link to set another password.
func PasswordReset(link string) Content {
	return Content{
		Subject: "Set a new password for dmarcd", Title: "Set a new password",
		Paragraphs: []string{
			"A new password was requested for the account with this address.",
			"The link works once, for 30 minutes. Setting a password ends all sessions.",
		},
		Action: Link{Text: "Set a new password", URL: link},
		Footer: "If you did not ask for it, ignore this message: your password stays as it is.",
	}
}

// NoPassword answers a user without a password who asked for another one.
func NoPassword(signIn string) Content {
	return Content{
		Subject: "Signing in to dmarcd", Title: "Your account has no password",
		Paragraphs: []string{
			"A new password was requested for the account with this address.",
			"It has none: sign in with single sign-on. If that fails, ask the operator of the installation.",
		},
		Action: Link{Text: "Sign in", URL: signIn},
		Footer: "If you did not ask for it, ignore this message.",
	}
}

// A Browser is where a user does something.
type Browser struct {
	At            time.Time
	Address, Name string
}

func (b Browser) details() []phrase.Detail {
	return []phrase.Detail{
		{Name: "Time", Value: b.At.UTC().Format("2 Jan 2006 15:04 UTC")}, {Name: "IP address", Value: b.Address}, {Name: "Browser", Value: b.Name},
	}
}

// PasswordChanged says that the password was changed. account is the page of the user's account.
func PasswordChanged(by Browser, account string) Content {
	return Content{
		Subject: "Your password for dmarcd was changed", Title: "Your password was changed",
		Paragraphs: []string{"All other sessions were ended. If it was not you, ask for a new password on the sign-in page at once, and tell the operator of the installation."},
		Details:    by.details(),
		Action:     Link{Text: "Open your account", URL: account},
		Footer:     "You get this message because you have an account with this address.",
	}
}
