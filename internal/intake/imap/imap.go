// Package imap fetches reports from mailboxes over IMAP (RFC 9051, RFC 3501). A Reader reads
// one mailbox; a Service runs a Reader for each mailbox of all teams.
//
// A message is downloaded to a file and passed to Accept. Only then is it counted as read and
// marked, so that marked messages are stored. A message may be passed twice after a crash or a
// change of UIDVALIDITY; Accept must detect duplicates. A message that the server does not
// deliver or that is too large is passed on with the reason, left unmarked, and not requested
// again.
//
// The server is not trusted. Every response has limits in bytes and time, and passes a guard
// that shows the IMAP library only what was requested. A connection that breaks a rule is
// closed and retried later.
package imap

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"time"

	"github.com/emersion/go-imap/v2"

	"github.com/dmarcd/dmarcd"
)

// Message is one message of a mailbox, valid until Accept returns.
type Message struct {
	UID uint32
	// Size is in bytes as the server reports it; 0 if it does not.
	Size int64
	// Body is the message at its start. For a rejected message it is the header or nil.
	Body *os.File
	// Rejection is why the message could not be fetched; "" if it was.
	Rejection string
}

// State is the position in a folder (RFC 9051 §2.3.1.1). The zero value is the start.
type State struct {
	UIDValidity, LastUID uint32
}

// Login holds the secret of a mailbox.
type Login struct {
	// Password is used if Token is nil.
	Password string
	// Token returns a fresh access token.
	Token func(context.Context) (string, error)
}

// Reader reads one mailbox.
type Reader struct {
	// Mailbox is the mailbox with its stored state.
	Mailbox dmarcd.Mailbox
	Login   Login
	// MaxBytes limits a message.
	MaxBytes int64
	// Interval is the time between two polls if the server does not support IDLE. It must be
	// set.
	Interval time.Duration
	// Folder is for temporary files; "" is the system default.
	Folder string

	// Accept stores the messages, including those without a report as rejected. After an error
	// they are not counted as read, and are passed again later.
	Accept func(ctx context.Context, messages []Message) error
	// SaveState stores the position.
	SaveState func(ctx context.Context, state State) error
	// Status receives the result of each poll; nil is success.
	Status func(ctx context.Context, err error)
	Log    *slog.Logger

	// Dial connects to the server and decides which addresses are allowed. It must be set.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS is the TLS configuration; nil is the default.
	TLS *tls.Config
}

// Limits of a connection.
const (
	// commandTimeout limits a command, connectTimeout everything until the folder is open,
	// bodyTimeout the download of one group.
	commandTimeout = time.Minute
	connectTimeout = time.Minute
	bodyTimeout    = 10 * time.Minute
	// farewell limits the wait for LOGOUT.
	farewell = 2 * time.Second

	// answerBytes limits a response without messages.
	answerBytes = 1 << 20
	// headerBytes limits the header that is stored of a rejected message.
	headerBytes = 64 << 10
	// chunk is the number of messages per command.
	chunk = 20
)

// settlePause is the minimum time between two polls, however often the server announces
// messages.
const settlePause = time.Second

// pollInterval is how often a folder is polled during IDLE without announcements. It also
// renews IDLE, well below the 29 minutes of RFC 2177, and detects dead connections.
const pollInterval = 5 * time.Minute

const (
	// firstRetry and lastRetry are the delays after the first failure and after many.
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// Run reads the mailbox until ctx ends: existing messages, then new ones. It retries after
// every failure and reports it to Status.
func (r *Reader) Run(ctx context.Context) error {
	w := &work{Reader: r, state: State{UIDValidity: r.Mailbox.UIDValidity, LastUID: r.Mailbox.LastUID}}
	for failures := 0; ; failures++ {
		w.progress = false
		err := w.converse(ctx)
		if w.progress {
			failures = 0
		}
		if !w.pause(ctx, failures, err) {
			return nil
		}
	}
}

// pause reports the error and waits for the next attempt. It returns false if ctx has ended.
func (w *work) pause(ctx context.Context, failures int, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	retry := retryAfter(failures, err)
	w.Log.Warn("could not read mailbox", "mailbox", w.Mailbox.ID, "team", w.Mailbox.Team, "error", err, "retry_in", retry)
	w.Status(ctx, err)
	timer := time.NewTimer(retry)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// retryAfter doubles with every failure. Up to half of it is random, so that readers do not
// return to a server at the same time.
func retryAfter(failures int, err error) time.Duration {
	wait := lastRetry
	if failures < 9 && !errors.Is(err, ErrLogin) {
		wait = min(firstRetry<<failures, lastRetry)
	}
	return wait/2 + rand.N(wait/2+1) //nolint:gosec // not a secret
}

// work is the state of a running Reader.
type work struct {
	*Reader

	state State
	// owed are accepted messages that are not marked yet.
	owed imap.UIDSet
	// unmarked is why the server did not mark the last messages; nil if it did.
	unmarked error
	// progress means that a poll succeeded or a message was accepted.
	progress bool
}

// converse reads over one connection until it fails, and returns the error.
func (w *work) converse(ctx context.Context) error {
	s, err := w.connect(ctx)
	if err != nil {
		return err
	}
	defer s.leave()
	for {
		settled := time.After(settlePause)
		if err := w.poll(ctx, s); err != nil {
			return err
		}
		w.progress = true
		w.Status(ctx, w.unmarked)
		if err := s.await(ctx, w.Interval); err != nil {
			return err
		}
		select {
		case <-settled:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// poll reads the new messages of the folder.
func (w *work) poll(ctx context.Context, s *session) error {
	folder, err := s.open(ctx, w.Mailbox.Folder)
	err = at(StageFolder, err)
	if err != nil {
		return err
	}
	if w.renumbered(folder) {
		w.Log.Warn("mailbox UIDs changed, reading it from the beginning", "mailbox", w.Mailbox.ID, "team", w.Mailbox.Team)
	}
	if err := w.settle(ctx, s); err != nil {
		return err
	}
	end, err := s.end(ctx, folder)
	if err != nil {
		return err
	}
	for imap.UID(w.state.LastUID)+1 < end {
		in := nextSpan(imap.UID(w.state.LastUID), end, folder.NumMessages)
		uids, err := s.search(ctx, in)
		if err != nil {
			return err
		}
		for part := range slices.Chunk(uids, chunk) {
			if err := w.read(ctx, s, part); err != nil {
				return err
			}
		}
		if len(uids) == 0 && in.last+1 < end {
			w.state.LastUID = uint32(in.last) // saved with the next message: gaps may be wide
			continue
		}
		if err := w.advance(ctx, uint32(in.last)); err != nil {
			return err
		}
	}
	return nil
}

// renumbered records the UIDVALIDITY of the folder and reports whether known UIDs are void:
// the messages have other UIDs, or UIDs are reused, as after a restored backup.
func (w *work) renumbered(folder *imap.SelectData) bool {
	same := folder.UIDValidity == w.state.UIDValidity
	if same && (folder.UIDNext == 0 || uint64(folder.UIDNext) > uint64(w.state.LastUID)) {
		return false
	}
	before := w.state
	w.state = State{UIDValidity: folder.UIDValidity}
	w.owed = nil
	return before != State{}
}

func (w *work) read(ctx context.Context, s *session, uids []imap.UID) error {
	announced, err := s.announce(ctx, uids)
	if err != nil {
		return err
	}
	for _, group := range groups(announced, w.MaxBytes) {
		if err := w.bring(ctx, s, group); err != nil {
			return err
		}
		// Messages at the end of the group that were deleted count as read too.
		if err := w.advance(ctx, group[len(group)-1].UID); err != nil {
			return err
		}
		if err := w.settle(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// bring downloads a group of messages and passes on those that arrived.
func (w *work) bring(ctx context.Context, s *session, group []Message) error {
	messages, broken := w.download(ctx, s, group)
	defer discardAll(messages)
	if err := w.accept(ctx, messages); err != nil {
		return err
	}
	return broken
}

// accept passes messages on, and counts them as read once they are stored.
func (w *work) accept(ctx context.Context, messages []Message) error {
	if len(messages) == 0 {
		return nil
	}
	if err := w.Accept(ctx, messages); err != nil {
		return fmt.Errorf("store reports of messages: %w", err)
	}
	w.progress = true
	for _, m := range messages {
		// Rejected messages are not stored here: leave them unmarked.
		if m.Rejection == "" && w.Mailbox.After != dmarcd.AfterKeep {
			w.owed.AddNum(imap.UID(m.UID))
		} else if m.Rejection != "" {
			w.Log.Warn("message rejected", "mailbox", w.Mailbox.ID, "team", w.Mailbox.Team, "uid", m.UID, "reason", m.Rejection)
		}
	}
	return w.advance(ctx, messages[len(messages)-1].UID)
}

// advance saves that all messages up to uid were read.
func (w *work) advance(ctx context.Context, uid uint32) error {
	if uid <= w.state.LastUID {
		return nil
	}
	next := State{UIDValidity: w.state.UIDValidity, LastUID: uid}
	if err := w.SaveState(ctx, next); err != nil {
		return fmt.Errorf("save mailbox position: %w", err)
	}
	w.state = next
	return nil
}

// settle marks the accepted messages, including those of earlier connections. A message that
// the server does not mark is not retried.
func (w *work) settle(ctx context.Context, s *session) error {
	if len(w.owed) == 0 {
		return nil
	}
	err := s.mark(ctx, w.Mailbox, w.owed)
	if err != nil && !rejected(err) {
		return err
	}
	if err != nil {
		w.Log.Warn("could not mark messages as processed", "mailbox", w.Mailbox.ID, "team", w.Mailbox.Team, "error", err)
	}
	w.owed, w.unmarked = nil, err
	return nil
}
