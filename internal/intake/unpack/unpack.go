// Package unpack finds the reports in whatever a reporter sent: bare XML or
// JSON, gzip, bzip2, zlib, zip, bare base64, uuencode, whole mails of any MIME
// structure, mbox, emlx, and these inside each other. How something is packed and whether it is a
// report is told from its content, never from names and media types: reporters
// label gzip as zip and zip as text (RFC 9990 asks for gzip, much else is sent).
// A media type only tells which parts of a mail are mails themselves, and which
// stand beside a report and need not be one, such as its text and its pictures.
//
// Memory stays constant: content is streamed, and what needs random access is
// spooled to a temporary file. Every limit is counted while data comes out,
// never taken from what a header declares. One odd member does not stop the
// rest: it is handed over as a Rejected part with the reason.
//
// Reading the reports is left to the packages aggregate, tlsrpt and failure,
// folders and Maildir to the caller.
package unpack

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/dmarcd/dmarcd/failure"
)

// Kind says what a part looks like.
type Kind uint8

const (
	// Rejected means that the part holds no report that can be read; see
	// Part.Err.
	Rejected Kind = iota
	// Aggregate means XML that should be a DMARC aggregate report.
	Aggregate
	// TLS means JSON that should be a TLS report (RFC 8460).
	TLS
	// Failure means a feedback report (RFC 5965) or a failure report in plain
	// text; Part.Failure holds it.
	Failure
)

// String returns the word used in logs and lists.
func (k Kind) String() string {
	switch k {
	case Aggregate:
		return "aggregate"
	case TLS:
		return "tls"
	case Failure:
		return "failure"
	default:
		return "rejected"
	}
}

// The reasons of rejected parts. They are tested with errors.Is; a LimitError
// is a reason too.
var (
	// ErrEmpty means that there is nothing in it.
	ErrEmpty = errors.New("the content is empty")
	// ErrUnused means that the content is the word "unused", which some
	// reporters send in place of a report.
	ErrUnused = errors.New(`the content is the word "unused" in place of a report`)
	// ErrNoReport means a mail or an archive without anything in it that could
	// be a report.
	ErrNoReport = errors.New("it contains no report")
	// ErrUnknown means content that is no report and no container.
	ErrUnknown = errors.New("the content is not a report")
	// ErrDamaged means a container that breaks before its content begins, and,
	// from Part.Damage, one that breaks later.
	ErrDamaged = errors.New("the container is damaged")
	// ErrEncrypted means a member of an archive that needs a password.
	ErrEncrypted = errors.New("the archive is encrypted")
	// ErrMethod means a member of a zip archive that is compressed by a method
	// which is not read.
	ErrMethod = errors.New("the compression method of the zip member is not supported")
)

// Mail holds the header fields of the mail that a part came in, decoded
// (RFC 2047) and cut to a length for people to read. They are what the sender
// claims, and no proof of anything.
type Mail struct {
	From      string
	Subject   string
	MessageID string
	Date      string
}

// Part is one report, or one thing that cannot be read as such. It reads its
// content: for Aggregate and TLS the document, for the other kinds nothing. It
// is valid until the function that was given it returns.
type Part struct {
	Kind Kind
	// Path says where it was found, as names joined by slashes, such as
	// "reports.zip/2026/example.xml". Names are cleaned and shortened; they are
	// for people, and are not fit to open a file with.
	Path string
	// MediaType is what the mail says the part is, in lower case, "" outside
	// of mails.
	MediaType string
	// Mail is the innermost mail around the part, nil if there is none.
	Mail *Mail
	// Failure holds the pieces of a Failure part.
	Failure failure.Message
	// Err says why a Rejected part cannot be read.
	Err error

	content io.Reader
	budget  *budget
	damage  error
}

// Read reads the content. A container that is cut off or fails its checksum
// ends the content where it breaks, with io.EOF, because reports can be read up
// to there; Damage then tells. Other errors are a *LimitError, the error of the
// context, or one of the reader that was given to Walk.
func (p *Part) Read(b []byte) (int, error) {
	if p.content == nil {
		return 0, io.EOF
	}
	n, err := p.content.Read(b)
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	if stop := p.budget.refuses(err); stop != nil {
		return n, stop
	}
	p.damage = damaged(err)
	p.content = nil
	return n, io.EOF
}

// AnotherDocument counts another report in the content as a member of the input. It
// returns the *LimitError that ends the walk where there are too many.
func (p *Part) AnotherDocument() error { return p.budget.member() }

// Damage returns what is wrong with the container, as far as the content was
// read: an error that wraps ErrDamaged, or nil.
func (p *Part) Damage() error { return p.damage }

// Visit is called for every part, in the order in which they are found. An
// error of it ends the walk.
type Visit func(p *Part) error

// Walk hands every report in r, and everything that should be one and is not,
// to visit. It calls visit at least once unless it returns an error.
//
// It returns a *LimitError if r is too long, expands to too much or has too
// many members; parts visited before that are sound. Limits that concern one
// member alone, Ratio and Nesting, do not end the walk: the member is Rejected,
// or, where its content is being read, Read returns the *LimitError. A mail or
// mailbox that ends early because of damage is told as a Rejected part after
// what was found in it. Walk also ends with the error of ctx, of r, or of visit.
//
// A zip archive in r is read in place if r has the methods of io.ReaderAt and
// Size() int64, as *bytes.Reader and *io.SectionReader do, and stands at its
// beginning.
func Walk(ctx context.Context, r io.Reader, limits Limits, visit Visit) error {
	return new(Walker).Walk(ctx, r, limits, visit)
}

// Walk is the function Walk with the buffers of earlier walks.
func (buffers *Walker) Walk(ctx context.Context, r io.Reader, limits Limits, visit Visit) error {
	b := &budget{limits: limits, stopped: ctx.Err}
	if s, ok := r.(sized); ok && s.Size() > limits.Input {
		return b.exceeded(LimitInput, limits.Input)
	}
	w := &walker{Walker: buffers, budget: b, visit: visit}
	in := &input{r: r, budget: b}
	if err := w.content(in, place{}); err != nil {
		return err
	}
	return b.fatal
}

// damaged wraps the error of a container's reader.
func damaged(err error) error {
	if errors.Is(err, ErrDamaged) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}
