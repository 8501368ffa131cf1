package unpack

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"
	"regexp"
	"strconv"
	"strings"
)

// quotedFrom matches a "From " line of the content, quoted so that it does not start a
// message.
var quotedFrom = regexp.MustCompile(`^>+From `)

// IsMbox reports whether content that starts with head is a mailbox in mbox format (RFC
// 4155).
func IsMbox(head []byte) bool { return mboxLine.Match(head) }

// Messages returns the messages of a mailbox in mbox format, with quoted lines restored.
// A message is valid until the next iteration and does not have to be read completely.
// There is no size limit, and memory is constant. An error of r is returned once, at the
// end.
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
func (w *walker) mbox(r io.Reader, at location) error {
	number := 0
	for message, err := range Messages(r) {
		if stop := w.budget.alive(); stop != nil {
			return stop
		}
		if err != nil {
			if limit := w.budget.reject(err); limit != nil {
				return w.reject(at, limit)
			}
			return w.reject(at, damaged(err)) // more messages may follow
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

// untilDamage ends a message where the container of its mailbox is damaged. The damage is
// reported once, for the mailbox.
type untilDamage struct {
	r      io.Reader
	budget *budget
}

func (u *untilDamage) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	if err != nil && u.budget.reject(err) == nil {
		err = io.EOF
	}
	return n, err
}

// mailbox reads the messages of an mbox.
type mailbox struct {
	r          *bufio.Reader
	lineStart  bool
	afterEmpty bool   // the previous line was empty, or there is none
	held       []byte // that empty line, which may belong to the separator
	ended      bool   // at the end of the message
	line       []byte
	rest       []byte
	err        error
}

// next advances to the next message.
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

// Read implements io.Reader for the current message.
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

// fill reads a line, or a piece of a long line.
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

// emlxLine matches the first line of an emlx file: the length of the mail.
var emlxLine = regexp.MustCompile(`^\d{1,15}[ \t]*\r?\n`)

// isEmlx reports whether text begins like an emlx file.
func isEmlx(text []byte) bool {
	line := emlxLine.Find(text)
	return line != nil && isMail(text[len(line):])
}

// emlx walks through a mail in the format of Apple Mail: a line with its length, the
// mail, and a property list, which is ignored.
func (w *walker) emlx(r *bufio.Reader, at location) error {
	line, err := r.ReadSlice('\n')
	for err == nil && len(bytes.TrimSpace(line)) == 0 {
		line, err = r.ReadSlice('\n')
	}
	length, err := strconv.ParseInt(strings.TrimSpace(string(line)), 10, 64)
	if err != nil {
		return w.reject(at, damaged(err))
	}
	return w.mail(io.LimitReader(r, length), at)
}
