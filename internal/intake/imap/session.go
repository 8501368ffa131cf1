package imap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
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

const (
	// maxFound limits the UIDs of one search result: a larger folder is searched in spans of
	// that many UIDs.
	maxFound = 1 << 16
	// numberBytes is the maximum length of a UID in a search result.
	numberBytes = len("4294967295 ")
	// lateMessages is how many messages may arrive during a search.
	lateMessages = 1 << 12
)

// errTooManyFound means that the result is impossible: the server would have us fetch without
// end.
var errTooManyFound = errors.New("the server returned more messages than requested")

// span is a range of UIDs, with both ends.
type span struct {
	first, last imap.UID
}

// nextSpan returns the next span of UIDs to search, after one and below end, in a folder with
// that many messages.
func nextSpan(after, end imap.UID, messages uint32) span {
	last := end - 1
	if messages > maxFound && last-after > maxFound {
		last = after + maxFound
	}
	return span{first: after + 1, last: last}
}

// search returns the UIDs in the span, sorted.
func (s *session) search(ctx context.Context, in span) ([]imap.UID, error) {
	found := &results{span: in}
	s.guard.setSearch(found)
	defer s.guard.setSearch(nil)
	err := s.within(ctx, commandTimeout, answerBytes+int64(maxFound*numberBytes), func() error {
		criteria := &imap.SearchCriteria{UID: []imap.UIDSet{{imap.UIDRange{Start: in.first, Stop: in.last}}}}
		_, err := s.client.UIDSearch(criteria, nil).Wait()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("search the folder: %w", readable(err))
	}
	s.guard.setSearch(nil) // nothing is added from here on
	slices.Sort(found.uids)
	return slices.Compact(found.uids), nil
}

// results are the UIDs of a search. The library would insert each into a sorted set, in
// quadratic time if they arrive in descending order.
type results struct {
	span
	uids []imap.UID
}

// setSearch collects search results in r; nil drops them.
func (g *guard) setSearch(r *results) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.search = r
}

// collect reads a search result.
func (g *guard) collect(arguments []byte, add func(*results, []byte) error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.search == nil {
		return nil
	}
	return add(g.search, arguments)
}

// addNumbers reads a SEARCH response (RFC 3501 §7.2.5), which may end with a MODSEQ list (RFC
// 7162 §3.1.5).
func addNumbers(r *results, arguments []byte) error {
	numbers, _, _ := bytes.Cut(arguments, []byte("("))
	for number := range bytes.FieldsSeq(numbers) {
		uid, err := strconv.ParseUint(string(number), 10, 32)
		if err != nil {
			return errMalformed
		}
		if err := r.add(imap.UID(uid), imap.UID(uid)); err != nil {
			return err
		}
	}
	return nil
}

// addSet reads an ESEARCH response (RFC 9051 §7.3.4).
func addSet(r *results, arguments []byte) error {
	isSet := false
	for word := range bytes.FieldsSeq(arguments) {
		if !isSet {
			isSet = bytes.EqualFold(word, []byte("ALL"))
			continue
		}
		for part := range bytes.SplitSeq(word, []byte(",")) {
			from, to, ranged := bytes.Cut(part, []byte(":"))
			if !ranged {
				to = from
			}
			first, err1 := strconv.ParseUint(string(from), 10, 32)
			last, err2 := strconv.ParseUint(string(to), 10, 32)
			if err1 != nil || err2 != nil {
				return errMalformed
			}
			if err := r.add(imap.UID(min(first, last)), imap.UID(max(first, last))); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// add adds the UIDs from first to last that are in the span. A short range may stand for
// billions.
func (r *results) add(first, last imap.UID) error {
	first, last = max(first, r.first), min(last, r.last)
	if first > last {
		return nil
	}
	if uint64(len(r.uids))+uint64(last-first) >= maxFound+lateMessages {
		return errTooManyFound
	}
	for uid := first; uid < last; uid++ {
		r.uids = append(r.uids, uid)
	}
	r.uids = append(r.uids, last) // separate, because the highest UID has no successor
	return nil
}

var errTooMuch = errors.New("the server sent more data than requested")

// meter is a connection with a byte budget.
//
// The first error is final: later reads fail. The library would retry, and turns the error
// into text; failure returns the original.
type meter struct {
	net.Conn

	left   atomic.Int64
	failed atomic.Pointer[error]
	rest   error // an error that came with data; used by the reader only
}

// allow sets the byte budget.
func (m *meter) allow(bytes int64) { m.left.Store(bytes) }

// remaining returns the rest of the budget.
func (m *meter) remaining() int64 { return m.left.Load() }

// fail records the first error of the connection, and returns it.
func (m *meter) fail(err error) error {
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		err = errSilent
	}
	m.failed.CompareAndSwap(nil, &err)
	return m.failure()
}

// failure returns the error that ended the connection, or nil.
func (m *meter) failure() error {
	if err := m.failed.Load(); err != nil {
		return *err
	}
	return nil
}

func (m *meter) Read(b []byte) (int, error) {
	if err := m.failure(); err != nil {
		return 0, err
	}
	left := m.left.Load()
	err := m.rest
	if left <= 0 {
		err = errTooMuch
	}
	if err == nil {
		var n int
		n, err = m.Conn.Read(b[:min(int64(len(b)), left)])
		m.left.Add(-int64(n))
		if n > 0 {
			m.rest = err
			return n, nil
		}
	}
	if err == nil {
		return 0, nil
	}
	return 0, m.fail(err)
}
