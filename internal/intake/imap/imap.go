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
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/dmarcd/dmarcd"
)

// Message is one message of a mailbox, valid until Accept returns.
type Message struct {
	UID uint32
	// ReceivedAt and Size are what the server reports; zero if it does not.
	ReceivedAt time.Time
	Size       int64
	// Body is the message at its start. For a rejected message it is the header or nil.
	Body *os.File
	// Rejection says why the message could not be fetched; "" if it was.
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

	// Accept stores the messages, also those that have no report, as rejected. After an error
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
