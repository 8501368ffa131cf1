package imap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
)

// libraryPanic is how the library tells that its reader crashed: it recovers on its
// own, and makes an error of it.
const libraryPanic = "imapclient: panic reading response"

var errSilent = errors.New("the server timed out")

// session is one connection to the server.
type session struct {
	client *imapclient.Client
	guard  *guard
	raw    net.Conn // below TLS: closing it does not wait for the server
	caps   imap.CapSet
	deaf   bool // the server announces IDLE and refuses it
	// news is told that the server has announced a change of the folder.
	news chan struct{}
}

// within runs f, which speaks with the server. When the time is over or ctx ends
// the connection is closed, which makes f return; when more than bytes come in, the
// connection fails.
func (s *session) within(ctx context.Context, limit time.Duration, bytes int64, f func() error) error {
	limited, cancel := context.WithTimeoutCause(ctx, limit, errSilent)
	defer cancel()
	defer context.AfterFunc(limited, func() { _ = s.raw.Close() })() // it is of no more use
	s.guard.allow(bytes)
	err := f()
	if err == nil {
		return nil
	}
	if strings.Contains(err.Error(), libraryPanic) {
		panic(err) // it belongs to the boundary of this package
	}
	if limited.Err() != nil {
		return context.Cause(limited)
	}
	for _, reason := range []error{errTooMuch, errSilent, errMalformed, errTooManyFound} {
		if errors.Is(s.guard.failure(), reason) {
			return reason
		}
	}
	return err
}

// fetch is within for a FETCH.
func (s *session) fetch(ctx context.Context, limit time.Duration, bytes int64, f func() error) error {
	s.guard.fetching.Store(true)
	defer s.guard.fetching.Store(false)
	return s.within(ctx, limit, bytes, f)
}

// command is within for a command with a short answer.
func (s *session) command(ctx context.Context, f func() error) error {
	return s.within(ctx, commandTimeout, answerBytes, f)
}

// leave ends the session, politely if the server still answers.
func (s *session) leave() {
	ctx := context.Background()                                                                // that of the reading may have ended
	_ = s.within(ctx, farewell, answerBytes, func() error { return s.client.Logout().Wait() }) // we go anyway
	s.drop()
}

// drop ends the session without a word.
func (s *session) drop() {
	_ = s.raw.Close()    // the server may have been first
	_ = s.client.Close() // waits for the library's reader
}

// open selects the folder. Done again it tells what is new, and does not expunge
// (RFC 9051 §6.3.2).
func (s *session) open(ctx context.Context, folder string) (*imap.SelectData, error) {
	select {
	case <-s.news: // what was announced until now is told by the answer
	default:
	}
	var data *imap.SelectData
	err := s.command(ctx, func() (err error) {
		data, err = s.client.Select(folder, nil).Wait()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open the folder %q: %w", folder, readable(err))
	}
	return data, nil
}

// end returns the UID after that of the last message in the folder.
func (s *session) end(ctx context.Context, folder *imap.SelectData) (imap.UID, error) {
	if folder.UIDNext > 0 || folder.NumMessages == 0 {
		return folder.UIDNext, nil
	}
	// RFC 3501 §6.3.1 lets a server leave it out.
	var end imap.UID
	err := s.fetch(ctx, commandTimeout, answerBytes, func() error {
		found, err := s.client.Fetch(imap.SeqSetNum(folder.NumMessages), &imap.FetchOptions{UID: true}).Collect()
		for _, m := range found {
			end = m.UID + 1
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("query the last message: %w", readable(err))
	}
	return end, nil
}

// await returns when the server has announced something, or when it is time to
// look anyway: after interval, where it cannot announce anything.
func (s *session) await(ctx context.Context, interval time.Duration) error {
	if s.deaf || !s.caps.Has(imap.CapIdle) {
		return s.pause(ctx, interval)
	}
	var idle *imapclient.IdleCommand
	err := s.command(ctx, func() (err error) {
		idle, err = s.client.Idle()
		return err
	})
	if refused(err) {
		s.deaf = true
		return s.pause(ctx, interval)
	}
	if err != nil {
		return fmt.Errorf("wait for messages: %w", readable(err))
	}
	waited := s.pause(ctx, lookEvery)
	ended := s.command(ctx, func() error { return errors.Join(idle.Close(), idle.Wait()) })
	if waited == nil && ended != nil {
		waited = fmt.Errorf("wait for messages: %w", readable(ended))
	}
	return waited
}

// pause waits for d, news, or the end.
func (s *session) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.news:
	case <-s.client.Closed():
		return errors.New("the server closed the connection")
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
