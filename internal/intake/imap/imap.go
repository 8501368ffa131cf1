// Package imap brings in the mail that lies in mailboxes elsewhere, by IMAP
// (RFC 9051, RFC 3501). A Reader reads one mailbox for as long as it is let; a
// Service runs one for each mailbox of all teams.
//
// A message is downloaded to a file, handed to Accept, and is only then counted as
// read and marked: what was marked is on disk. It may be handed over twice, after a
// crash or when the server numbers its messages anew; whoever accepts it knows what
// it has. A message that the server does not deliver, or that is too large, is
// handed over with the reason, left as it lies, and not asked for again.
//
// The server is not trusted. Every answer has a limit in bytes and in time, and
// passes a guard that lets the IMAP library see only what was asked for. A connection
// that breaks a rule is closed, and made anew after a while.
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

// Message is one message of a mailbox. What it holds is valid until Accept
// returns.
type Message struct {
	UID uint32
	// ReceivedAt is when the server took the message in, Size its size in bytes
	// by the server's word; both are zero where it says nothing.
	ReceivedAt time.Time
	Size       int64
	// Body is the message as it was sent, at its beginning. Of a refused one it
	// is what there is, the header or nil.
	Body *os.File
	// Refusal says why the message could not be had; "" if it could.
	Refusal string
}

// State says up to which message a folder was read (RFC 9051 §2.3.1.1). The zero
// value is before the first.
type State struct {
	UIDValidity, LastUID uint32
}

// Login is how a mailbox is logged in to.
type Login struct {
	// Password is used where Token is nil.
	Password string
	// Token returns a fresh access token.
	Token func(context.Context) (string, error)
}

// Reader reads one mailbox.
type Reader struct {
	// Mailbox says what is read, from the state it tells on.
	Mailbox dmarcd.Mailbox
	Login   Login
	// MaxBytes is how large a message may be.
	MaxBytes int64
	// Interval is the time between two looks where the server does not announce
	// messages. It must be set.
	Interval time.Duration
	// Folder is where messages lie while they are accepted; "" is the folder of
	// the system for such files.
	Folder string

	// Accept keeps what the messages bring, in one piece: if it returns an error
	// nothing is counted as read, and the messages come again later.
	Accept func(ctx context.Context, messages []Message) error
	// SaveState keeps the state.
	SaveState func(ctx context.Context, state State) error
	// Status is told how each look into the mailbox ended; nil is well.
	Status func(ctx context.Context, err error)
	Log    *slog.Logger

	// Dial connects to the server. It decides which addresses may be reached, and
	// must be set.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS is the configuration of TLS; nil is the default one.
	TLS *tls.Config
}

// The limits of a conversation with a server.
const (
	// commandTimeout bounds the answer to a command, connectTimeout the way to
	// where the folder can be read, bodyTimeout the download of one group.
	commandTimeout = time.Minute
	connectTimeout = time.Minute
	bodyTimeout    = 10 * time.Minute
	// farewell is how long a server is waited for that we leave.
	farewell = 2 * time.Second

	// answerBytes bounds the answer to a command without messages in it.
	answerBytes = 1 << 20
	// headerBytes is how much of the header of a refused message is kept.
	headerBytes = 64 << 10
	// chunk is how many messages are asked for at once.
	chunk = 20
)

// lookPause is the least time between two looks into a folder, however often the
// server announces messages.
const lookPause = time.Second

// lookEvery is how often a folder is looked into whose server announces messages and
// has announced none. It also ends and renews IDLE, well below the 29 minutes of
// RFC 2177, and finds a connection that died in silence.
const lookEvery = 5 * time.Minute
