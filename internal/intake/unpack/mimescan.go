package unpack

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// scanner reads a mail line by line in one pass: a header, then a body up to the next
// boundary of any open multipart. An outer boundary ends all inner multiparts (RFC 2046
// §5.1.2).
//
// MIME libraries drop a part with a broken header line and all parts after it, or keep
// the whole mail in memory. Real reports arrive in such mail.
type scanner struct {
	r      *bufio.Reader
	budget *budget
	open   []string // boundaries, outermost first

	atLineStart bool
	held        []byte // line ending that may belong to a boundary
	line        []byte
	rest        []byte // unread part of line
	ended       bool   // at the end of the body
	// met is the index in open of the boundary that ended the body, -1 at the end of the
	// mail. closing means that it ends its multipart.
	met     int
	closing bool
	// damage is set if the mail is truncated.
	damage error
}

func newScanner(r io.Reader, b *budget) *scanner {
	return &scanner{r: bufio.NewReaderSize(r, sniffBytes), budget: b, atLineStart: true, met: -1}
}

// begin starts the header and body that follow a boundary.
func (s *scanner) begin() {
	s.atLineStart = true
	s.held, s.rest = s.held[:0], nil
	s.ended, s.closing = false, false
	s.met = -1
}

// Read implements io.Reader for the body.
func (s *scanner) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.ended {
			return 0, io.EOF
		}
		line, err := s.next()
		if err != nil {
			return 0, err
		}
		if s.ended {
			s.rest = s.held // no boundary follows
			continue
		}
		s.take(line)
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// next returns the next line, or a piece of a long one. At the end of the mail, or where
// its container is damaged, it returns nil and ends the body. Errors are limits and
// errors that end the walk.
func (s *scanner) next() ([]byte, error) {
	line, err := s.r.ReadSlice('\n')
	if len(line) > 0 {
		return line, nil // the next line returns an error
	}
	s.ended = true
	s.rest = nil
	limit := s.budget.reject(err)
	if limit == nil && !errors.Is(err, io.EOF) {
		s.damage = damaged(err)
	}
	return nil, limit
}

// take adds a line to the body, or ends the body at a boundary. The line ending before a
// boundary belongs to the boundary (RFC 2046 §5.1.1).
func (s *scanner) take(line []byte) {
	if s.atLineStart && s.boundary(line) {
		s.ended = true
		return
	}
	text := line
	s.line = append(s.line[:0], s.held...)
	s.held = s.held[:0]
	s.atLineStart = bytes.HasSuffix(line, []byte("\n"))
	if s.atLineStart {
		text = bytes.TrimSuffix(line[:len(line)-1], []byte("\r"))
		s.held = append(s.held, line[len(text):]...)
	}
	s.line = append(s.line, text...)
	s.rest = s.line
}

// boundary reports whether a line is a boundary, and sets met and closing.
func (s *scanner) boundary(line []byte) bool {
	text := bytes.TrimRight(line, " \t\r\n")
	if !bytes.HasPrefix(text, []byte("--")) {
		return false
	}
	text = text[2:]
	for i := len(s.open) - 1; i >= 0; i-- {
		switch b := s.open[i]; {
		case string(text) == b:
			s.met, s.closing = i, false
			return true
		case len(text) == len(b)+2 && string(text) == b+"--":
			s.met, s.closing = i, true
			return true
		}
	}
	return false
}

// skip discards the rest of the body.
func (s *scanner) skip() error {
	s.rest = nil
	for !s.ended {
		line, err := s.next()
		if err != nil {
			return err
		}
		if s.atLineStart && s.boundary(line) {
			s.ended = true
		}
		s.atLineStart = bytes.HasSuffix(line, []byte("\n"))
	}
	return nil
}
