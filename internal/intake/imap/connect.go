package imap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/emersion/go-sasl"

	"github.com/dmarcd/dmarcd"
)

// ErrLogin means that the server or the token provider rejected the login. Frequent retries
// would look like an attack.
var ErrLogin = errors.New("the server rejected the login")

// ErrFolder means that the login succeeded but the folder cannot be opened.
var ErrFolder = errors.New("the login succeeded, but the folder cannot be opened")

// Try connects, logs in and opens the folder, and returns the error to show to the user.
func (r *Reader) Try(ctx context.Context) error {
	s, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer s.leave()
	if _, err = s.open(ctx, r.Mailbox.Folder); err != nil {
		return fmt.Errorf("%w: %w", ErrFolder, err)
	}
	return nil
}

// connect returns a session that is logged in.
func (r *Reader) connect(ctx context.Context) (*session, error) {
	limited, cancel := context.WithTimeoutCause(ctx, connectTimeout, errSilent)
	defer cancel()
	s, err := r.dial(limited)
	if err == nil {
		err = r.enter(limited, s)
		if err != nil {
			s.drop()
		}
	}
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("connect to %s: %w", r.address(), errSilent)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (r *Reader) address() string {
	return net.JoinHostPort(r.Mailbox.Host, strconv.Itoa(r.Mailbox.Port))
}

// dial connects, with implicit TLS if configured.
func (r *Reader) dial(ctx context.Context) (*session, error) {
	raw, err := r.Dial(ctx, "tcp", r.address())
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", r.address(), err)
	}
	conn, greeting := raw, ""
	switch r.Mailbox.Security {
	case dmarcd.SecuritySTARTTLS:
		if err = r.startTLS(ctx, raw); err != nil {
			break
		}
		greeting = "* OK secured\r\n" // servers do not send a second greeting
		fallthrough
	case dmarcd.SecurityTLS:
		conn, err = r.secure(ctx, raw)
	case dmarcd.SecurityNone:
	}
	if err != nil {
		_ = raw.Close() // report the first error
		return nil, err
	}
	s := &session{raw: raw, guard: newGuard(conn, greeting), news: make(chan struct{}, 1)}
	s.client = imapclient.New(s.guard, &imapclient.Options{
		UnilateralDataHandler: &imapclient.UnilateralDataHandler{
			Mailbox: func(*imapclient.UnilateralDataMailbox) {
				select {
				case s.news <- struct{}{}:
				default: // it is known already
				}
			},
		},
	})
	return s, nil
}

// enter logs in and reads the capabilities.
func (r *Reader) enter(ctx context.Context, s *session) error {
	err := s.command(ctx, func() error {
		if err := s.client.WaitGreeting(); err != nil {
			return err
		}
		s.caps = s.client.Caps()
		return nil
	})
	if err != nil {
		return fmt.Errorf("greet %s: %w", r.address(), readable(err))
	}
	if err := r.login(ctx, s); err != nil {
		return err
	}
	return s.command(ctx, func() error {
		if s.caps = s.client.Caps(); s.caps == nil { // servers announce more after the login
			return errors.New("the server does not report its capabilities")
		}
		return nil
	})
}

func (r *Reader) login(ctx context.Context, s *session) error {
	user := r.Mailbox.Username
	var enter func() error
	if r.Login.Token != nil {
		token, err := r.Login.Token(ctx)
		if err != nil {
			return err
		}
		enter = func() error { return s.client.Authenticate(bearer(s.caps, user, token)) }
	} else {
		enter = func() error { return s.client.Login(user, r.Login.Password).Wait() }
		if s.caps.Has(imap.CapLoginDisabled) {
			enter = func() error { return s.client.Authenticate(sasl.NewPlainClient("", user, r.Login.Password)) }
		}
	}
	err := s.command(ctx, enter)
	var unhappy *tokenError
	if rejected(err) && !unavailable(err) || errors.As(err, &unhappy) {
		return fmt.Errorf("%w: %w", ErrLogin, readable(err))
	}
	if err != nil {
		return fmt.Errorf("log in: %w", readable(err))
	}
	return nil
}
