package smtpd

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/dmarcd/dmarcd/internal/clientaddr"
	"github.com/dmarcd/dmarcd/internal/fair"
)

const (
	// maxCommandBytes limits a command line. RFC 5321 §4.5.3.1.4 allows 512 bytes, and a few
	// hundred more for the announced extensions.
	maxCommandBytes = 4 << 10
	// freeCommands and freeFailures are the numbers of commands and of errors, in addition to
	// those for recipients, that a client has until a mail is accepted.
	freeCommands = 100
	freeFailures = 20
	// networkBytes is the size of a network read.
	networkBytes = 16 << 10
	// smallChunk is the size below which a chunk of BDAT counts as a command.
	smallChunk = 1 << 10
)

// reading is what the library reads next.
type reading int

const (
	// readsCommand: a command line.
	readsCommand reading = iota
	// readsData: the lines of a mail after 354, up to the final dot.
	readsData
	// readsChunk: the bytes announced by a BDAT command.
	readsChunk
)

// dialog is a connection as go-smtp sees it. It knows whether the library reads a command or a
// mail: in the first case it returns one bounded line at a time, in the second no byte beyond
// the end of the mail. The library itself buffers a line of any length after the first chunk of
// a mail.
//
// It also implements STARTTLS (RFC 3207), because lines under TLS must pass through it as well.
// The library treats a secured connection like any other.
//
// A dialog is used by the goroutine of its session only.
type dialog struct {
	*connection
	wire net.Conn // the connection, or TLS on top of it
	in   *bufio.Reader
	// offer is the configuration for STARTTLS; nil does not offer it.
	offer *tls.Config
	turns *turns
	// endTurn releases the slot of the session; nil if it has none.
	endTurn func()

	reads reading
	line  []byte // of the command, what is not yet returned
	chunk int64  // bytes of the chunk that are not yet returned
	data  dataState
	// bdat is set while a BDAT command waits for its reply or its chunk.
	bdat bool
	// announce: the next reply to EHLO must list STARTTLS. mute: the next reply is not for the
	// client.
	announce, mute bool
	// greeted is set after EHLO or HELO, and reset by STARTTLS.
	greeted bool
}

func newDialog(c *connection, offer *tls.Config, turns *turns) *dialog {
	return &dialog{connection: c, wire: c, in: bufio.NewReaderSize(c, networkBytes), offer: offer, turns: turns}
}

// turns limits how many sessions process received bytes at a time. Clients can send as fast as
// the mails are read, so no read blocks: without a limit, dozens of such sessions would be in
// the queue of the scheduler, in front of every request. A session holds a slot while it
// processes what it has read from the network, and none while it waits for more.
type turns = fair.Limiter[netip.Prefix]

const (
	// turnMemory is how long past slots count against a network; a quiet network goes first.
	turnMemory = time.Minute
	// maxTurnWait is how long a session waits for a slot. A slot is held for less than a
	// millisecond.
	maxTurnWait = 3 * time.Second
)

// newTurns returns a limiter that leaves half of the processors to other work.
func newTurns() *turns {
	return fair.New[netip.Prefix](fair.Options{Capacity: fair.HalfCores(), HalfLife: turnMemory})
}

// awaitMail waits for bytes of a mail, and for a slot to process them.
func (d *dialog) awaitMail() error {
	if d.in.Buffered() > 0 {
		return nil
	}
	d.rest()
	if _, err := d.in.Peek(1); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(context.Background(), maxTurnWait)
	defer cancel()
	d.endTurn, _ = d.turns.Acquire(waiting, clientaddr.SiteOf(d.remote), 1) // it goes on without one
	return nil
}

// rest releases the slot of the session, if it has one.
func (d *dialog) rest() {
	if d.endTurn != nil {
		d.endTurn()
		d.endTurn = nil
	}
}

// Read returns the next bytes for the library.
func (d *dialog) Read(p []byte) (int, error) {
	if d.bdat {
		// The library reads without a reply: it expects the chunk.
		d.bdat, d.reads = false, readsChunk
	}
	if d.reads == readsChunk && d.chunk == 0 {
		d.reads = readsCommand
	}
	switch d.reads {
	case readsData:
		return d.readData(p)
	case readsChunk:
		return d.readChunk(p)
	default:
		return d.readCommand(p)
	}
}

// readCommand returns bytes of one command line.
func (d *dialog) readCommand(p []byte) (int, error) {
	d.rest()
	if len(d.line) == 0 {
		if err := d.await(); err != nil {
			return 0, err // also where the next command is here already
		}
		line, err := d.readLine()
		if err != nil {
			return 0, err
		}
		if d.line, err = d.command(line); err != nil {
			return 0, err
		}
	}
	n := copy(p, d.line)
	d.line = d.line[n:]
	return n, nil
}

// readLine reads a line of bounded length, which is valid until the next read. It returns an
// error for a line without its end.
func (d *dialog) readLine() ([]byte, error) {
	for {
		buffered, _ := d.in.Peek(d.in.Buffered()) // it is there
		end := bytes.IndexByte(buffered, '\n') + 1
		switch {
		case end > maxCommandBytes || end == 0 && len(buffered) >= maxCommandBytes:
			return nil, smtp.ErrTooLongLine
		case end > 0:
			_, err := d.in.Discard(end)
			return buffered[:end], err
		}
		if _, err := d.in.Peek(len(buffered) + 1); err != nil {
			return nil, err
		}
	}
}

// command prepares for what follows a command line, and returns the line for the library.
func (d *dialog) command(line []byte) ([]byte, error) {
	verb, rest := line, ""
	if len(line) > 4 {
		verb, rest = line[:4], string(line[4:])
	}
	switch strings.ToUpper(string(verb)) {
	case "EHLO":
		d.greeted, d.announce = true, d.offer != nil
	case "HELO":
		d.greeted = true
	case "BDAT":
		d.chunk = chunkSize(rest)
		d.bdat = true
		if d.chunk >= smallChunk {
			return line, nil // the size of the mail bounds their number
		}
	case "STAR":
		if d.offer != nil && strings.EqualFold(strings.TrimSpace(rest), "TTLS") {
			return d.startTLS()
		}
	}
	return line, d.countCommand()
}

// chunkSize returns the size that a BDAT command announces, parsed like the library does; 0 if
// it is invalid.
func chunkSize(arguments string) int64 {
	fields := strings.Fields(arguments)
	if len(fields) == 0 {
		return 0
	}
	size, err := strconv.ParseUint(fields[0], 10, 32)
	if err != nil {
		return 0
	}
	return int64(size)
}

// startTLS secures the connection. It discards what the client has sent before (RFC 3207 §4.2),
// and the library's transaction.
func (d *dialog) startTLS() ([]byte, error) {
	if err := d.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(d.wire, "220 2.0.0 Ready to start TLS\r\n"); err != nil {
		return nil, err
	}
	secured := tls.Server(d.connection, d.offer)
	// The deadlines of the connection limit it.
	if err := secured.HandshakeContext(context.Background()); err != nil {
		return nil, err
	}
	d.wire, d.offer, d.greeted, d.mute = secured, nil, false, true
	d.in.Reset(secured)
	return []byte("RSET\r\n"), d.countCommand()
}

// readChunk returns bytes of the chunk. It returns an error for a chunk that ends early,
// because io.EOF would mean the end of the mail to the library.
func (d *dialog) readChunk(p []byte) (int, error) {
	err := d.awaitMail()
	n := 0
	if err == nil {
		n, err = d.in.Read(p[:min(int64(len(p)), d.chunk)])
	}
	if d.chunk -= int64(n); d.chunk == 0 {
		d.rest() // the mail may be made durable now
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// readData returns bytes of the mail, including the final dot.
func (d *dialog) readData(p []byte) (int, error) {
	if err := d.awaitMail(); err != nil {
		return 0, err
	}
	buffered, _ := d.in.Peek(min(d.in.Buffered(), len(p)))
	n := 0
	for n < len(buffered) && d.data != dataEnd {
		if d.data == dataText { // nothing but CR changes that
			at := bytes.IndexByte(buffered[n:], '\r')
			if at < 0 {
				n = len(buffered)
				break
			}
			n += at
		}
		d.data = d.data.next(buffered[n])
		n++
	}
	if d.data == dataEnd {
		d.reads = readsCommand
		d.rest() // the mail is made durable now
	}
	copy(p, buffered[:n])
	return d.in.Discard(n)
}

// Write sends a reply. The library writes each line separately; some lines determine what it
// reads next.
func (d *dialog) Write(p []byte) (int, error) {
	d.rest()
	if d.mute {
		d.mute = false
		return len(p), nil
	}
	code := string(p[:min(len(p), 3)])
	switch {
	case code == "354":
		d.reads, d.data = readsData, dataLineStart
	case code == "552" && d.bdat:
		d.reads = readsChunk // it is too large, and read all the same
	case d.reads == readsData, d.bdat:
		d.reads = readsCommand
	}
	d.bdat = false
	if code >= "4" {
		d.countFailure()
	}
	if !d.announce || !bytes.HasPrefix(p, []byte("250-")) {
		return d.wire.Write(p)
	}
	d.announce = false
	if _, err := d.wire.Write(append(bytes.Clone(p), "250-STARTTLS\r\n"...)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close closes the connection, with close_notify under TLS.
func (d *dialog) Close() error {
	d.rest()
	return d.wire.Close()
}

// dataState is the position of the reader in a mail after DATA. It ends a mail exactly where
// the library does.
type dataState int

const (
	dataLineStart dataState = iota
	dataDot                 // a dot at the start of a line
	dataDotCR               // a dot and CR at the start of a line
	dataCR                  // CR elsewhere
	dataText
	dataEnd // after CR LF dot CR LF
)

// next returns the state after one more byte.
func (s dataState) next(c byte) dataState {
	switch {
	case s == dataLineStart && c == '.':
		return dataDot
	case (s == dataLineStart || s == dataText) && c == '\r':
		return dataCR
	case s == dataDot && c == '\r':
		return dataDotCR
	case s == dataDotCR && c == '\n':
		return dataEnd
	case s == dataCR && c == '\n':
		return dataLineStart
	default:
		return dataText
	}
}
