package unpack

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"
	"regexp"
	"strconv"
)

// quotedFrom finds a line that was changed so that it does not look like the
// beginning of a message.
var quotedFrom = regexp.MustCompile(`^>+From `)

// IsMbox reports whether a content that begins with head is a mailbox in the
// mbox format (RFC 4155).
func IsMbox(head []byte) bool { return mboxLine.Match(head) }

// Messages yields the mails of a mailbox in the mbox format, one after the
// other, each as it was before it was put there. A mail is valid until the next
// one is asked for, and need not be read to its end. There is no limit: a
// mailbox may be of any length, and takes no more memory for it. An error of r
// is yielded once, at the end.
func Messages(r io.Reader) iter.Seq2[io.Reader, error] {
	return func(yield func(io.Reader, error) bool) {
		box := &mailbox{r: bufio.NewReaderSize(r, sniffBytes), lineStart: true, afterEmpty: true}
		for {
			more, err := box.next()
			if err != nil {
				yield(nil, err)
				return
			}
			if !more || !yield(box, nil) {
				return
			}
		}
	}
}

// mbox walks through a mailbox.
func (w *walker) mbox(r io.Reader, at place) error {
	number := 0
	for message, err := range Messages(r) {
		if stop := w.budget.alive(); stop != nil {
			return stop
		}
		if err != nil {
			if limit := w.budget.refuses(err); limit != nil {
				return w.reject(at, limit)
			}
			return w.reject(at, damaged(err)) // there may have been more
		}
		if err := w.budget.member(); err != nil {
			return err
		}
		number++
		name := ""
		if number > 1 {
			name = "message-" + strconv.Itoa(number)
		}
		r := bufio.NewReader(&untilDamage{message, w.budget})
		if err := w.open(formatMail, r, r, at.in(name)); err != nil {
			return err
		}
	}
	return nil
}

// untilDamage ends a message where the container around its mailbox is damaged:
// that is told for the mailbox.
type untilDamage struct {
	r      io.Reader
	budget *budget
}

func (u *untilDamage) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	if err != nil && u.budget.refuses(err) == nil {
		err = io.EOF
	}
	return n, err
}

// mailbox reads one message of an mbox after the other.
type mailbox struct {
	r          *bufio.Reader
	lineStart  bool
	afterEmpty bool   // the line before was empty, or there was none
	held       []byte // that empty line: it may belong to what follows
	ended      bool   // the message is over
	line       []byte
	rest       []byte
	err        error
}

// next goes to the next message.
func (b *mailbox) next() (bool, error) {
	for !b.ended && b.err == nil {
		b.fill()
	}
	if b.err != nil && !errors.Is(b.err, io.EOF) {
		return false, b.err
	}
	more := b.ended && b.err == nil
	b.ended, b.rest = false, nil
	return more, nil
}

// Read reads the message.
func (b *mailbox) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		if b.ended {
			return 0, io.EOF
		}
		if b.err != nil {
			return 0, b.err
		}
		b.fill()
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// fill reads a line, or a piece of a long one.
func (b *mailbox) fill() {
	line, err := b.r.ReadSlice('\n')
	if len(line) == 0 {
		b.err = err
		b.rest, b.held = b.held, nil
		return
	}
	whole := b.lineStart
	b.lineStart = bytes.HasSuffix(line, []byte("\n"))
	if whole && b.afterEmpty && mboxLine.Match(line) {
		b.ended = true
		b.afterEmpty = false
		b.rest, b.held = nil, b.held[:0]
		return
	}
	b.line = append(b.line[:0], b.held...)
	b.held = b.held[:0]
	b.afterEmpty = whole && len(bytes.TrimRight(line, "\r\n")) == 0
	switch {
	case b.afterEmpty:
		b.held = append(b.held, line...)
	case whole && quotedFrom.Match(line):
		b.line = append(b.line, line[1:]...)
	default:
		b.line = append(b.line, line...)
	}
	b.rest = b.line
}
