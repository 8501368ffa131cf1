package app

import (
	"context"
	"errors"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake/imap"
	"github.com/dmarcd/dmarcd/internal/outbound"
	"github.com/dmarcd/dmarcd/internal/service"
)

// mailboxLogins logs in to mailboxes.
type mailboxLogins struct{ dialer *outbound.Dialer }

// Secret implements service.Mailboxes.
func (mailboxLogins) Secret(password string) ([]byte, error) {
	credentials := imap.Credentials{Password: password}
	return credentials.Encode(), credentials.Validate()
}

// Rejected implements service.Mailboxes.
func (mailboxLogins) Rejected(problem string) bool {
	return strings.HasPrefix(problem, imap.ErrLogin.Error())
}

// Try implements service.Mailboxes: the provider may have replaced the refresh token.
func (l mailboxLogins) Try(ctx context.Context, m dmarcd.Mailbox, encoded []byte) ([]byte, error) {
	credentials, err := imap.DecodeCredentials(encoded)
	if err != nil {
		return nil, err
	}
	login := credentials.Login(l.dialer.Client(nil), func(_ context.Context, renewed imap.Credentials) error {
		credentials = renewed
		return nil
	})
	err = (&imap.Reader{Mailbox: m, Login: login, Dial: l.dialer.DialContext}).Try(ctx)
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
