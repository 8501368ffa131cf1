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

// A Browser is where a user does something. Address and Name are "" for what others do.
type Browser struct {
	At            time.Time
	Address, Name string
}

func (b Browser) details() []phrase.Detail {
	details := []phrase.Detail{{Name: "Time", Value: b.At.UTC().Format("2 Jan 2006 15:04 UTC")}}
	if b.Address != "" {
		details = append(details, phrase.Detail{Name: "IP address", Value: b.Address}, phrase.Detail{Name: "Browser", Value: b.Name})
	}
	return details
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

// FactorChanged says what changed about the second factor of the user.
func FactorChanged(change string, by Browser, account string) Content {
	return Content{
		Subject: "Your second factor for dmarcd was changed", Title: change,
		Paragraphs: []string{"If it was not you, end all other sessions and change your password at once, and tell the operator of the installation."},
		Details:    by.details(),
		Action:     Link{Text: "Open your account", URL: account},
		Footer:     "You get this message because you have an account with this address.",
	}
}

// NewSignIn says that the user signed in with a browser for the first time. means is how they proved who
// they are.
func NewSignIn(by Browser, means, account string) Content {
	return Content{
		Subject: "New sign-in to dmarcd", Title: "You signed in with another browser",
		Paragraphs: []string{"If it was you, there is nothing to do. If not, end all other sessions and change your password at once, and tell the operator of the installation."},
		Details:    append(by.details(), phrase.Detail{Name: "Signed in with", Value: means}),
		Action:     Link{Text: "Open your account", URL: account},
		Footer:     "You get this message because you have an account with this address.",
	}
}

// ConfirmAddress has a link to confirm an address.
func ConfirmAddress(link string) Content {
	return Content{
		Subject: "Confirm your address for dmarcd", Title: "Is this your address?",
		Paragraphs: []string{"A user of dmarcd wants to use this address for their account. The link works once, for 30 minutes, in a browser that is signed in to it."},
		Action:     Link{Text: "Confirm the address", URL: link},
		Footer:     "If you did not ask for it, ignore this message: nothing changes.",
	}
}

// AddressChanged tells the previous address of a user.
func AddressChanged(by Browser, now string) Content {
	return Content{
		Subject: "Your address for dmarcd was changed", Title: "Your account has another address",
		Paragraphs: []string{"You now sign in as " + now + ". If it was not you, tell the operator of the installation at once."},
		Details:    by.details(),
		Footer:     "You get this message because your account had this address.",
	}
}
