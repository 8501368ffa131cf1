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

// libraryPanic is the prefix of the error that the library returns after a panic in its
// reader.
const libraryPanic = "imapclient: panic reading response"

var errSilent = errors.New("the server timed out")

// session is a connection to the server.
type session struct {
	client *imapclient.Client
	guard  *guard
	raw    net.Conn // below TLS: Close does not wait for the server
	caps   imap.CapSet
	deaf   bool // the server announces IDLE but rejects it
	// news is signalled when the server announces a change of the folder.
	news chan struct{}
}

// within runs f with a time and byte limit. When the time is over or ctx ends it closes the
// connection, which makes f return.
func (s *session) within(ctx context.Context, limit time.Duration, bytes int64, f func() error) error {
	limited, cancel := context.WithTimeoutCause(ctx, limit, errSilent)
	defer cancel()
	defer context.AfterFunc(limited, func() { _ = s.raw.Close() })() // the session is not used again
	s.guard.allow(bytes)
	err := f()
	if err == nil {
		return nil
	}
	if strings.Contains(err.Error(), libraryPanic) {
		panic(err) // for the boundary of this package
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

// fetch is within for FETCH.
func (s *session) fetch(ctx context.Context, limit time.Duration, bytes int64, f func() error) error {
	s.guard.fetching.Store(true)
	defer s.guard.fetching.Store(false)
	return s.within(ctx, limit, bytes, f)
}

// command is within for a command with a short response.
func (s *session) command(ctx context.Context, f func() error) error {
	return s.within(ctx, commandTimeout, answerBytes, f)
}

// leave ends the session with LOGOUT.
func (s *session) leave() {
	ctx := context.Background()                                                                // the context of the reader may have ended
	_ = s.within(ctx, farewell, answerBytes, func() error { return s.client.Logout().Wait() }) // best effort
	s.drop()
}

// drop ends the session without LOGOUT.
func (s *session) drop() {
	_ = s.raw.Close()    // the server may have closed it first
	_ = s.client.Close() // waits for the library's reader
}

// open selects the folder. Reselecting shows what is new, and does not expunge (RFC 9051
// §6.3.2).
func (s *session) open(ctx context.Context, folder string) (*imap.SelectData, error) {
	select {
	case <-s.news: // SELECT covers earlier announcements
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

// end returns UIDNEXT of the folder.
func (s *session) end(ctx context.Context, folder *imap.SelectData) (imap.UID, error) {
	if folder.UIDNext > 0 || folder.NumMessages == 0 {
		return folder.UIDNext, nil
	}
	// It is optional (RFC 3501 §6.3.1).
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

// await returns when the server announces a change, or when the next poll is due: after
// interval, if it does not support IDLE.
func (s *session) await(ctx context.Context, interval time.Duration) error {
	if s.deaf || !s.caps.Has(imap.CapIdle) {
		return s.pause(ctx, interval)
	}
	var idle *imapclient.IdleCommand
	err := s.command(ctx, func() (err error) {
		idle, err = s.client.Idle()
		return err
	})
	if rejected(err) {
		s.deaf = true
		return s.pause(ctx, interval)
	}
	if err != nil {
		return fmt.Errorf("wait for messages: %w", readable(err))
	}
	waited := s.pause(ctx, pollInterval)
	ended := s.command(ctx, func() error { return errors.Join(idle.Close(), idle.Wait()) })
	if waited == nil && ended != nil {
		waited = fmt.Errorf("wait for messages: %w", readable(ended))
	}
	return waited
}

// pause waits for d, an announcement or the end of ctx.
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
