// Package unpack finds the reports in an input: bare XML or JSON, gzip, bzip2, zlib, zip,
// bare base64, uuencode, mail of any MIME structure, mbox, emlx, and nested combinations.
// It detects formats by content, never by names or media types, because reporters label
// gzip as zip and zip as text (RFC 9990 asks for gzip, but other formats are common). A
// media type only decides which parts of a mail are mails, and which accompany a report,
// such as text and pictures.
//
// Memory is constant: content is streamed, and spooled to a temporary file if it needs
// random access. Limits apply to the actual output, never to declared sizes. A bad member
// does not stop the walk: it becomes a Rejected part with a reason.
//
// The packages aggregate, tlsrpt and failure parse the reports. Callers handle folders
// and Maildir.
package unpack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/failure"
)

// Kind is the kind of a part, by its appearance.
type Kind uint8

const (
	// Rejected is a part that cannot be read as a report; see Part.Err.
	Rejected Kind = iota
	// Aggregate is XML that should be a DMARC aggregate report.
	Aggregate
	// TLS is JSON that should be a TLS report (RFC 8460).
	TLS
	// Failure is a feedback report (RFC 5965) or a failure report in plain text; see
	// Part.Failure.
	Failure
)

var kindWords = [...]string{Rejected: "rejected", Aggregate: "aggregate", TLS: "tls", Failure: "failure"}

// String returns the name for logs and lists.
func (k Kind) String() string { return kindWords[k] }

// The reasons of rejected parts, for errors.Is. A LimitError is also a reason.
var (
	// errEmpty means that there is no content.
	errEmpty = errors.New("the content is empty")
	// errUnused means that the content is the word "unused", which some reporters send
	// instead of a report.
	errUnused = errors.New(`the content is the word "unused" instead of a report`)
	// ErrNoReport means that nothing in a mail or archive could be a report.
	ErrNoReport = errors.New("it contains no report")
	// errUnknown means that the content is neither a report nor a container.
	errUnknown = errors.New("not a report")
	// ErrDamaged means that a container is damaged: for a Rejected part before its
	// content starts, in Part.Damage later.
	ErrDamaged = errors.New("the container is damaged")
	// ErrEncrypted means that a member of an archive needs a password.
	ErrEncrypted = errors.New("the archive is encrypted")
	// errMethod means that a zip member has an unsupported compression method.
	errMethod = errors.New("the compression method of the zip member is not supported")
)

// Part is a report, or something that cannot be read as one. Its Read method returns the
// document of Aggregate and TLS, and nothing for other kinds. It is valid until the Visit
// function returns.
type Part struct {
	Kind Kind
	// Path is the location, as names joined by slashes, such as
	// "reports.zip/2026/example.xml". Names are cleaned and truncated for display; do not
	// open files with them.
	Path string
	// Failure contains the pieces of a Failure part.
	Failure failure.Message
	// Err is the reason of a Rejected part.
	Err error

	content io.Reader
	budget  *budget
	damage  error
}

// Read reads the content. If the container is truncated or fails its checksum, Read
// returns io.EOF at that point, because reports can be read up to there; see Damage.
// Other errors are a *LimitError, the error of the context, or that of the reader given
// to Walk.
func (p *Part) Read(b []byte) (int, error) {
	if p.content == nil {
		return 0, io.EOF
	}
	n, err := p.content.Read(b)
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	if stop := p.budget.reject(err); stop != nil {
		return n, stop
	}
	p.damage = damaged(err)
	p.content = nil
	return n, io.EOF
}

// AnotherDocument counts another report in the content as a member of the input. It
// returns a *LimitError, which ends the walk, if there are too many.
func (p *Part) AnotherDocument() error { return p.budget.member() }

// Damage returns an error that wraps ErrDamaged if the container is damaged in the
// content read so far, otherwise nil.
func (p *Part) Damage() error { return p.damage }

// Visit is called for every part, in order. Its error ends the walk.
type Visit func(p *Part) error

// Limits are the limits of one walk. All except Progress and Folder are required: zero
// allows nothing. The context, or Progress, limits the time.
type Limits struct {
	// Input is the number of bytes read from the reader given to Walk.
	Input int64
	// Expanded is the number of bytes that all containers together expand to, including
	// nested ones.
	Expanded int64
	// Ratio is the maximum expansion of one compressed stream. It applies from RatioFrom
	// expanded bytes on: smaller output is harmless, and short repetitive texts compress
	// very well.
	Ratio     int64
	RatioFrom int64
	// Members is the total number of files in archives, parts of mails, messages in
	// mailboxes, and further documents in files.
	Members int
	// Nesting is the number of containers around a report.
	Nesting int
	// Folder is the folder for temporary files; "" is the system default.
	Folder string
	// Progress, if not nil, is called before each read with the number of expanded bytes
	// so far. It may block; its error ends the walk.
	Progress func(expanded int64) error
}

// DefaultLimits returns limits well above every report seen in practice.
func DefaultLimits() Limits {
	return Limits{
		Input:     32 << 20,
		Expanded:  256 << 20,
		Ratio:     200,
		RatioFrom: 1 << 20,
		Members:   1000,
		Nesting:   5,
	}
}

// Limit names one of the Limits.
type Limit string

// The limits that can be exceeded.
const (
	LimitInput    Limit = "input bytes"
	LimitExpanded Limit = "expanded bytes"
	LimitRatio    Limit = "compression ratio"
	LimitMembers  Limit = "members"
	LimitNesting  Limit = "nesting"
)

// LimitError names the limit that was exceeded. It is a dmarcd.ErrLimit.
type LimitError struct {
	Limit Limit
	Max   int64
}

// Error returns the limit and its value.
func (e *LimitError) Error() string {
	return fmt.Sprintf("over the limit of %d for %s", e.Max, e.Limit)
}

// Is implements errors.Is for dmarcd.ErrLimit.
func (e *LimitError) Is(target error) bool { return target == dmarcd.ErrLimit }

// Walker walks through inputs one after another and reuses its buffers, which makes
// walks through many small inputs faster. The zero value is ready for use. It is not safe
// for concurrent use.
type Walker struct {
	inflaters []*inflater
	gzips     []*gzipStream
	buffers   []*bufio.Reader // of sniffBytes
}

// Walk calls visit for every report in r, and for everything that should be one but is
// not. It calls visit at least once unless it returns an error.
//
// It returns a *LimitError if r is too long, expands to too much, or has too many
// members; parts visited before are valid. Limits on one member, Ratio and Nesting, do
// not end the walk: the member is Rejected, or its Read returns the *LimitError. A
// damaged mail or mailbox is reported as a Rejected part after the parts found in it.
// Walk also returns errors of ctx, r and visit.
//
// A zip archive in r is read in place if r is at its beginning and implements io.ReaderAt
// and Size() int64, as *bytes.Reader and *io.SectionReader do.
func (buffers *Walker) Walk(ctx context.Context, r io.Reader, limits Limits, visit Visit) error {
	b := &budget{limits: limits, stopped: ctx.Err}
	if s, ok := r.(sized); ok && s.Size() > limits.Input {
		return b.exceeded(LimitInput, limits.Input)
	}
	w := &walker{Walker: buffers, budget: b, visit: visit}
	in := &input{r: r, budget: b}
	if err := w.content(in, location{}); err != nil {
		return err
	}
	return b.fatal
}

func damaged(err error) error {
	if errors.Is(err, ErrDamaged) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// budget tracks how much of its limits a walk has used.
type budget struct {
	limits   Limits
	stopped  func() error // the Err method of the walk's context
	expanded int64
	members  int
	// fatal is the error that ended the walk. After it, no reader of this walk returns
	// data.
	fatal error
}

// fail ends the walk.
func (b *budget) fail(err error) error {
	if b.fatal == nil {
		b.fatal = err
	}
	return b.fatal
}

// exceeded ends the walk with a LimitError.
func (b *budget) exceeded(limit Limit, maximum int64) error {
	return b.fail(&LimitError{Limit: limit, Max: maximum})
}

// alive returns the error that ended the walk, or nil.
func (b *budget) alive() error {
	if b.fatal != nil {
		return b.fatal
	}
	if err := b.stopped(); err != nil {
		return b.fail(err)
	}
	if b.limits.Progress != nil {
		if err := b.limits.Progress(b.expanded); err != nil {
			return b.fail(err)
		}
	}
	return nil
}

// member counts one member of a container.
func (b *budget) member() error {
	if err := b.alive(); err != nil {
		return err
	}
	b.members++
	if b.members > b.limits.Members {
		return b.exceeded(LimitMembers, int64(b.limits.Members))
	}
	return nil
}

// reject returns the error that ended the walk, or err if it is a LimitError. It returns
// nil if err only means that a container is damaged.
func (b *budget) reject(err error) error {
	if b.fatal != nil {
		return b.fatal
	}
	var limit *LimitError
	if errors.As(err, &limit) {
		return limit
	}
	return nil
}

// input reads the reader given to Walk, up to the limit. Errors of that reader end the
// walk: a broken connection is not a damaged report.
type input struct {
	r      io.Reader
	budget *budget
	n      int64
}

func (in *input) Read(p []byte) (int, error) {
	if err := in.budget.alive(); err != nil {
		return 0, err
	}
	// One byte more than allowed may be read, to detect that the limit is exceeded.
	n, err := in.r.Read(p[:min(int64(len(p)), in.budget.limits.Input-in.n+1)])
	in.n += int64(n)
	if in.n > in.budget.limits.Input {
		return 0, in.budget.exceeded(LimitInput, in.budget.limits.Input)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = in.budget.fail(err)
	}
	return n, err
}

// counter counts the compressed bytes that a decompressor has consumed.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// meter counts the bytes that one container expands to.
type meter struct {
	r      io.Reader
	from   *counter
	budget *budget
	n      int64
	err    error // a limit exceeded by this container only
}

func (m *meter) Read(p []byte) (int, error) {
	if err := m.budget.alive(); err != nil {
		return 0, err
	}
	if m.err != nil {
		return 0, m.err
	}
	n, err := m.r.Read(p)
	m.n += int64(n)
	m.budget.expanded += int64(n)
	limits := &m.budget.limits
	if m.budget.expanded > limits.Expanded {
		return 0, m.budget.exceeded(LimitExpanded, limits.Expanded)
	}
	if m.n > limits.RatioFrom && m.n/limits.Ratio > m.from.n {
		m.err = &LimitError{Limit: LimitRatio, Max: limits.Ratio}
		return 0, m.err
	}
	return n, err
}
