package unpack

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// scanner reads a mail from top to bottom, line by line: a header, then a body
// that ends before the next boundary of any multipart that is open (RFC 2046
// §5.1.2 lets an outer boundary end everything inside). One pass serves any
// depth.
//
// The libraries for this refuse a part with a broken header line together with
// all that follow, or hold the whole mail in memory; reports come in such mails,
// and mails come without end.
type scanner struct {
	r      *bufio.Reader
	budget *budget
	open   []string // the boundaries, outermost first

	atLineStart bool
	held        []byte // the line ending that may belong to a boundary
	line        []byte
	rest        []byte // what is left of line
	ended       bool   // the body is over
	// met is the index in open of the boundary that ended the body, -1 at the
	// end of the mail; closing says that it ends its multipart.
	met     int
	closing bool
	// damage says that the mail ends before its end.
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

// Read reads the body.
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
			s.rest = s.held // no boundary follows that it could belong to
			continue
		}
		s.take(line)
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// next returns the next line, or a piece of a long one. At the end of the mail
// it returns nothing and the body has ended; where the container around the
// mail is damaged, the mail ends there. Errors are limits and those that end
// the walk.
func (s *scanner) next() ([]byte, error) {
	line, err := s.r.ReadSlice('\n')
	if len(line) > 0 {
		return line, nil // an error comes back with the next line
	}
	s.ended = true
	s.rest = nil
	limit := s.budget.refuses(err)
	if limit == nil && !errors.Is(err, io.EOF) {
		s.damage = damaged(err)
	}
	return nil, limit
}

// take makes a line part of the body, unless it ends it. The line ending before
// a boundary belongs to the boundary (RFC 2046 §5.1.1).
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

// boundary reports whether a line is a boundary, and notes which.
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

// skip reads over the rest of the body.
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
