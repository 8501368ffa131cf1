package imap

import "bytes"

// checkFetch reports whether the items of a FETCH response are among those that
// this package asks for or that servers add of their own:
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
