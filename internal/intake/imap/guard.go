package imap

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
)

const (
	// lineBytes limits a line for the library. A line that is dropped or that answers a search
	// may have answerBytes.
	lineBytes = 16 << 10
	// maxLines limits the lines for the library per command: a line costs it far more than its
	// bytes.
	maxLines = 1000
)

var errMalformed = errors.New("the server violates the IMAP protocol")

// guard is a connection to a server, above TLS, that passes only harmless responses to the
// IMAP library. The library recurses into nested lists, buffers any number of lines,
// capabilities and flags, and takes quadratic time for number sets. The guard passes
//
//	continuation   "+" text
//	status         ("*" / tag) (OK / NO / BAD / PREAUTH / BYE) [code] text
//	data           "*" CAPABILITY …, "*" n EXISTS, "*" n FETCH …
//
// rewritten, in at most maxLines lines of lineBytes per command. Of response codes with
// arguments only CAPABILITY, UIDNEXT and UIDVALIDITY pass. FETCH passes during a FETCH
// command, with the items that this package requests or servers add (see fetch.go), and is
// the only response with a literal. Search results are collected here. All other data was
// not requested and is dropped.
//
// The library sees only what the guard has parsed, so the two cannot disagree about where a
// literal begins.
type guard struct {
	*meter

	in      *bufio.Reader
	out     []byte // what the library reads next
	literal int64  // remaining bytes of a literal
	inFetch bool   // the rest of a FETCH follows the literal

	lines    atomic.Int64 // remaining lines for the library
	fetching atomic.Bool  // a FETCH is running

	mu     sync.Mutex
	search *results // of the running search, or nil
}

// newGuard returns a guard for a connection. The library reads greeting first.
func newGuard(conn net.Conn, greeting string) *guard {
	m := &meter{Conn: conn}
	g := &guard{meter: m, in: bufio.NewReader(m), out: []byte(greeting)}
	g.allow(answerBytes)
	return g
}

// allow sets the byte budget of the next command.
func (g *guard) allow(bytes int64) {
	g.meter.allow(bytes)
	g.lines.Store(maxLines)
}

// Read implements io.Reader for the library.
func (g *guard) Read(b []byte) (int, error) {
	if err := g.failure(); err != nil {
		return 0, err // the library would continue after an error
	}
	for len(g.out) == 0 && g.literal == 0 {
		if err := g.next(); err != nil {
			return 0, g.fail(err)
		}
	}
	if len(g.out) > 0 {
		n := copy(b, g.out)
		g.out = g.out[n:]
		return n, nil
	}
	n, err := g.in.Read(b[:min(int64(len(b)), g.literal)])
	g.literal -= int64(n)
	if err != nil {
		err = g.fail(err)
	}
	return n, err
}

// next reads a line and prepares what the library may see.
func (g *guard) next() error {
	line, err := g.readLine()
	if err != nil {
		return err
	}
	switch {
	case g.inFetch:
		return g.passFetch(line, line)
	case bytes.HasPrefix(line, []byte("+")):
		return g.pass(line)
	}
	tag, rest, _ := bytes.Cut(line, []byte(" "))
	if string(tag) != "*" {
		switch word, _, _ := bytes.Cut(rest, []byte(" ")); string(bytes.ToUpper(word)) {
		case "OK", "NO", "BAD":
			return g.passStatus(tag, rest)
		}
		return errMalformed
	}
	word, arguments, _ := bytes.Cut(rest, []byte(" "))
	if isNumber(word) {
		word, arguments, _ = bytes.Cut(arguments, []byte(" "))
	}
	switch string(bytes.ToUpper(word)) {
	case "OK", "NO", "BAD", "PREAUTH", "BYE":
		return g.passStatus(tag, rest)
	case "CAPABILITY", "EXISTS":
		return g.pass(line)
	case "FETCH":
		if g.fetching.Load() {
			return g.passFetch(line, arguments)
		}
	case "SEARCH":
		return g.collect(arguments, addNumbers)
	case "ESEARCH":
		return g.collect(arguments, addSet)
	}
	return g.drop(line)
}

// readLine returns the next line without its end. It is valid until the next call.
func (g *guard) readLine() ([]byte, error) {
	line, err := g.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line = slices.Clone(line)
		for errors.Is(err, bufio.ErrBufferFull) {
			if len(line) > answerBytes {
				return nil, errTooMuch
			}
			var more []byte
			more, err = g.in.ReadSlice('\n')
			line = append(line, more...)
		}
	}
	if errors.Is(err, io.EOF) && len(line) > 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	return bytes.TrimRight(line, " \r\n"), nil
}

func (g *guard) pass(line []byte) error {
	line = bytes.TrimRight(line, " ")
	if len(line) > lineBytes || g.lines.Add(-1) < 0 {
		return errTooMuch
	}
	g.out = append(append(g.out[:0], line...), "\r\n"...)
	return nil
}

// passStatus passes a status response, without response codes that are not needed.
func (g *guard) passStatus(tag, rest []byte) error {
	word, text, _ := bytes.Cut(rest, []byte(" "))
	head := string(tag) + " " + string(word)
	if !bytes.HasPrefix(text, []byte("[")) {
		return g.pass(fmt.Appendf(nil, "%s %s", head, text))
	}
	code, text, closed := bytes.Cut(text[1:], []byte("]"))
	if !closed {
		return errMalformed
	}
	switch name, _, arguments := bytes.Cut(code, []byte(" ")); string(bytes.ToUpper(name)) {
	case "CAPABILITY", "UIDNEXT", "UIDVALIDITY":
	default:
		if arguments {
			return g.pass(fmt.Appendf(nil, "%s%s", head, text))
		}
	}
	return g.pass(fmt.Appendf(nil, "%s [%s]%s", head, code, text))
}

// passFetch passes a line of a FETCH response with the given items.
func (g *guard) passFetch(line, rest []byte) error {
	size, announced, err := checkFetch(rest, g.inFetch)
	if err != nil {
		return err
	}
	g.inFetch = announced
	if !announced {
		return g.pass(line)
	}
	if size > g.remaining()+int64(g.in.Buffered()) {
		return errTooMuch
	}
	g.literal = size
	// The library supports no other form.
	head := bytes.TrimSuffix(line[:bytes.LastIndexByte(line, '{')], []byte("~"))
	return g.pass(fmt.Appendf(nil, "%s{%d}", head, size))
}

// drop skips a response and its literals.
func (g *guard) drop(line []byte) error {
	for {
		size, announced := literalSize(line)
		if !announced {
			return nil
		}
		if _, err := io.CopyN(io.Discard, g.in, size); err != nil {
			return err
		}
		var err error
		if line, err = g.readLine(); err != nil {
			return err
		}
	}
}

// literalSize returns the size of the literal at the end of a line (RFC 9051 §4.3): {n}, {n+}
// or ~{n}.
func literalSize(line []byte) (int64, bool) {
	open := bytes.LastIndexByte(line, '{')
	if open < 0 || !bytes.HasSuffix(line, []byte("}")) {
		return 0, false
	}
	digits := bytes.TrimSuffix(line[open+1:len(line)-1], []byte("+"))
	size, err := strconv.ParseUint(string(digits), 10, 63)
	return int64(size), err == nil
}

func isNumber(word []byte) bool {
	return len(word) > 0 && !bytes.ContainsFunc(word, func(r rune) bool { return r < '0' || r > '9' })
}

// checkFetch reports whether a FETCH response only has items that this package requests or that
// servers add:
//
//	response  = "(" [item *(" " item)] ")"
//	item      = "UID" SP number / "RFC822.SIZE" SP number
//	          / "INTERNALDATE" SP quoted / "BODY[" section "]" ["<" number ">"] SP nstring
//	          / "FLAGS" SP "(" [atom *(" " atom)] ")" / "MODSEQ" SP "(" number ")"
//	section   = "" / "HEADER"
//
// The nstring of BODY may be a literal at the end of the line: then its size is
// returned, and the rest of the response follows it on the next line, which is
// checked with continued set.
func checkFetch(line []byte, continued bool) (literal int64, announced bool, err error) {
	s := &scanner{rest: line}
	if !continued {
		s.expect("(")
	}
	for first := !continued; !s.skip(")"); first = false {
		if !first {
			s.expect(" ")
		}
		size, announced := s.item()
		if s.failed {
			return 0, false, errMalformed
		}
		if announced {
			return size, true, nil
		}
	}
	if s.failed || len(s.rest) > 0 {
		return 0, false, errMalformed
	}
	return 0, false, nil
}

type scanner struct {
	rest   []byte
	failed bool // something else was expected
}

// item reads an item. It returns the size of the literal at the end of the line, if there is
// one.
func (s *scanner) item() (size int64, announced bool) {
	name := s.until(" [(")
	switch string(bytes.ToUpper(name)) {
	case "UID", "RFC822.SIZE":
		s.expect(" ")
		s.number()
	case "INTERNALDATE":
		s.expect(" ")
		s.quoted()
	case "MODSEQ":
		s.skip(" ")
		s.expect("(")
		s.number()
		s.expect(")")
	case "FLAGS":
		s.skip(" ")
		s.expect("(")
		for !s.failed && !s.skip(")") {
			s.expectSome(s.until(" ()\"{"))
			s.skip(" ")
		}
	case "BODY":
		s.expect("[")
		if section := bytes.ToUpper(s.until("]")); len(section) > 0 && string(section) != "HEADER" {
			s.failed = true
		}
		s.expect("]")
		if s.skip("<") {
			s.number()
			s.expect(">")
		}
		s.expect(" ")
		return s.nstring()
	default:
		s.failed = true
	}
	return 0, false
}

func (s *scanner) nstring() (size int64, announced bool) {
	if s.failed || s.skip("NIL") {
		return 0, false
	}
	if bytes.HasPrefix(s.rest, []byte(`"`)) {
		s.quoted()
		return 0, false
	}
	s.skip("~")
	size, announced = literalSize(s.rest)
	if !announced || s.rest[0] != '{' || bytes.Count(s.rest, []byte("{")) != 1 {
		s.failed = true
	}
	return size, announced
}

// quoted reads a quoted string (RFC 9051 §4.3).
func (s *scanner) quoted() {
	s.expect(`"`)
	for i := 0; i < len(s.rest); i++ {
		switch s.rest[i] {
		case '\\':
			i++
		case '"':
			s.rest = s.rest[i+1:]
			return
		}
	}
	s.failed = true
}

func (s *scanner) number() {
	digits := 0
	for digits < len(s.rest) && s.rest[digits] >= '0' && s.rest[digits] <= '9' {
		digits++
	}
	s.expectSome(s.rest[:digits])
	s.rest = s.rest[digits:]
}

// until returns the bytes before the first of ends, or all.
func (s *scanner) until(ends string) []byte {
	n := bytes.IndexAny(s.rest, ends)
	if n < 0 {
		n = len(s.rest)
	}
	found := s.rest[:n]
	s.rest = s.rest[n:]
	return found
}

// skip skips text and reports whether it was there.
func (s *scanner) skip(text string) bool {
	rest, ok := bytes.CutPrefix(s.rest, []byte(text))
	s.rest = rest
	return ok
}

func (s *scanner) expect(text string) {
	if !s.skip(text) {
		s.failed = true
	}
}

func (s *scanner) expectSome(found []byte) {
	if len(found) == 0 {
		s.failed = true
	}
}
