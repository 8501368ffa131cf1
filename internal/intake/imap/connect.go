package imap

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"unicode"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/emersion/go-sasl"

	"github.com/dmarcd/dmarcd"
)

// ErrLogin means that the server or the token provider rejected the login. Frequent retries
// would look like an attack.
var ErrLogin = errors.New("the server rejected the login")

// Try connects, logs in and opens the folder. It returns a *StageError.
func (r *Reader) Try(ctx context.Context) error {
	s, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer s.leave()
	_, err = s.open(ctx, r.Mailbox.Folder)
	return at(StageFolder, err)
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
		err = at(stageOf(err, StageProtocol), fmt.Errorf("connect to %s: %w", r.address(), errSilent))
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
		return nil, at(dialStage(err), fmt.Errorf("connect to %s: %w", r.address(), err))
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
		return at(StageProtocol, fmt.Errorf("greet %s: %w", r.address(), readable(err)))
	}
	if err := r.login(ctx, s); err != nil {
		return err
	}
	return at(StageProtocol, s.command(ctx, func() error {
		if s.caps = s.client.Caps(); s.caps == nil { // servers announce more after the login
			return errors.New("the server does not report its capabilities")
		}
		return nil
	}))
}

func (r *Reader) login(ctx context.Context, s *session) error {
	user := r.Mailbox.Username
	var enter func() error
	if r.Login.Token != nil {
		token, err := r.Login.Token(ctx)
		if errors.Is(err, ErrLogin) {
			return at(StageLogin, err)
		}
		if err != nil {
			return at(StageToken, err)
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
		return at(StageLogin, fmt.Errorf("%w: %w", ErrLogin, readable(err)))
	}
	if err != nil {
		return at(StageProtocol, fmt.Errorf("log in: %w", readable(err)))
	}
	return nil
}

// secure starts TLS on a connection.
func (r *Reader) secure(ctx context.Context, raw net.Conn) (net.Conn, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if r.TLS != nil {
		config = r.TLS.Clone()
	}
	config.ServerName = cmp.Or(config.ServerName, r.Mailbox.Host)
	secured := tls.Client(raw, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, at(handshakeStage(err), fmt.Errorf("TLS handshake with %s: %w", r.address(), err))
	}
	return secured, nil
}

// startTLS sends STARTTLS (RFC 9051 §6.2.1). We do it, and not the library, so that the guard
// sits above TLS.
func (r *Reader) startTLS(ctx context.Context, raw net.Conn) error {
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() }) // unblocks the read
	defer stop()
	if err := negotiate(raw); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return at(StageEncryption, fmt.Errorf("STARTTLS with %s: %w", r.address(), readable(err)))
	}
	return nil
}

// negotiate reads the greeting, sends STARTTLS and waits for OK.
func negotiate(raw net.Conn) error {
	in := bufio.NewReader(io.LimitReader(raw, answerBytes))
	greeting, err := readClear(in)
	if err != nil {
		return err
	}
	if !hasWords(greeting, "*", "OK") { // not PREAUTH, which does not allow STARTTLS
		return fmt.Errorf("unexpected greeting %.100q", greeting)
	}
	if _, err := io.WriteString(raw, "S1 STARTTLS\r\n"); err != nil {
		return err
	}
	for {
		line, err := readClear(in)
		switch {
		case err != nil:
			return err
		case hasWords(line, "S1", "OK"):
			if in.Buffered() > 0 {
				return errors.New("the server sent plain text after STARTTLS")
			}
			return nil
		case !bytes.HasPrefix(line, []byte("* ")):
			return fmt.Errorf("unexpected response %.100q", bytes.TrimPrefix(line, []byte("S1 ")))
		}
	}
}

// readClear reads a short line before TLS.
func readClear(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		err = errTooMuch
	}
	return bytes.TrimRight(bytes.Clone(line), "\r\n"), err
}

func hasWords(line []byte, first, second string) bool {
	words := bytes.SplitN(line, []byte(" "), 3)
	return len(words) > 1 && string(words[0]) == first && bytes.EqualFold(words[1], []byte(second))
}

// maxWords limits the part of a server's message that is shown, in bytes.
const maxWords = 300

// rejected reports whether the server answered NO or BAD.
func rejected(err error) bool {
	var answer *imap.Error
	return errors.As(err, &answer)
}

// unavailable reports whether the server rejected a command temporarily (RFC 5530).
func unavailable(err error) bool {
	var answer *imap.Error
	if !errors.As(err, &answer) {
		return false
	}
	switch answer.Code {
	case imap.ResponseCodeUnavailable, imap.ResponseCodeInUse, imap.ResponseCodeLimit, imap.ResponseCodeServerBug:
		return true
	}
	return false
}

// readable returns an error whose text is safe to show: server messages may contain anything.
func readable(err error) error {
	words := err.Error()
	var answer *imap.Error
	if errors.As(err, &answer) {
		words = string(answer.Type) + " " + answer.Text
		if answer.Code != "" {
			words = string(answer.Type) + " [" + string(answer.Code) + "] " + answer.Text
		}
	}
	words = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, words)
	if len(words) > maxWords {
		words = strings.ToValidUTF8(words[:maxWords], "") + "…"
	}
	return &readableError{words: words, cause: err}
}

type readableError struct {
	words string
	cause error
}

func (e *readableError) Error() string { return e.words }

func (e *readableError) Unwrap() error { return e.cause }
