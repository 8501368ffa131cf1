package app

import (
	"context"
	"errors"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/intake/imap"
	"github.com/dmarcd/dmarcd/internal/outbound"
	"github.com/dmarcd/dmarcd/internal/secret"
	"github.com/dmarcd/dmarcd/internal/service"
)

// withMailboxes adds the mailbox functions to options.
func withMailboxes(options service.Options, cfg config.Config, dialer *outbound.Dialer) service.Options {
	options.PasswordSecret = func(password string) ([]byte, error) {
		credentials := imap.Credentials{Password: password}
		return credentials.Encode(), credentials.Validate()
	}
	options.TryMailbox = func(ctx context.Context, m dmarcd.Mailbox, encoded []byte) ([]byte, error) {
		return tryMailbox(ctx, dialer, m, encoded)
	}
	options.LoginRejected = imap.ErrLogin.Error()
	options.Seal = func(m dmarcd.Mailbox, plain []byte) ([]byte, error) {
		return secret.File(cfg.Secret.File).Seal(plain, m.SecretContext())
	}
	return options
}

// tryMailbox logs in to a mailbox, and returns the secret to store: the provider may have
// replaced the refresh token.
func tryMailbox(ctx context.Context, dialer *outbound.Dialer, m dmarcd.Mailbox, encoded []byte) ([]byte, error) {
	credentials, err := imap.DecodeCredentials(encoded)
	if err != nil {
		return nil, err
	}
	login := credentials.Login(dialer.Client(nil), func(_ context.Context, renewed imap.Credentials) error {
		credentials = renewed
		return nil
	})
	err = (&imap.Reader{Mailbox: m, Login: login, Dial: dialer.DialContext}).Try(ctx)
	switch {
	case errors.Is(err, imap.ErrLogin):
		return nil, &service.MailboxError{
			Field: "password", Message: "The server rejected the login. Check the user name and password; some providers require an app password.", Reason: err,
		}
	case errors.Is(err, imap.ErrFolder):
		return nil, &service.MailboxError{
			Field: "folder", Message: "The login succeeded, but the folder cannot be opened. Check its name.", Reason: err,
		}
	}
	return credentials.Encode(), err
}
