package aggregate

import (
	"bytes"
	"errors"
	"io"
)

// errFollows says that another report begins before the one that is read has
// ended.
var errFollows = errors.New("another report begins")

// Another makes the reader ready for the next report of a document that has
// several, one after the other or in an element around them. It reports false where
// there is none. It may be called once Next has returned io.EOF or a *RefusedError:
// what is wrong with one report does not concern the next. A report that exceeds a
// limit ends the document.
func (r *Reader) Another() bool {
	if !r.follows {
		return false
	}
	r.follows, r.begins = false, true
	r.report, r.record = Report{}, Record{}
	r.quirks = r.encoding
	r.seen, r.begun, r.met = 0, 0, 0
	r.firstFrom = ""
	r.before = r.behind
	r.content.Reset()
	r.ended = nil
	return true
}

// Length returns how many bytes of the document, in UTF-8, the report has taken so
// far, with those between it and the report before it.
func (r *Reader) Length() int64 {
	switch {
	case r.lex == nil:
		return 0
	case r.ended == nil:
		return r.offset() - r.before
	default:
		return r.behind - r.before
	}
}

// readRest reads what follows the report up to the next one. Blanks, comments and
// the ends of the elements around the report are fine, and so is what must stand
// between two documents.
func (r *Reader) readRest() error {
	r.behind = r.offset()
	quirks := r.quirks // those of what follows are not the report's
	between, junk, err := r.skipToReport()
	r.quirks = quirks
	r.quirks.noteIf(junk || between && !r.follows, TrailingJunk)
	return err
}

// skipToReport passes over everything up to the start tag of the next report. It
// tells whether there was something that only makes sense before another report,
// and whether there was something that makes no sense at all.
func (r *Reader) skipToReport() (between, junk bool, err error) {
	for {
		tok, err := r.lex.next(false)
		switch {
		case errors.Is(err, io.EOF):
			return between, junk, nil
		case errors.Is(err, errTooLong):
			return between, true, nil
		case err != nil:
			return between, junk, err
		}
		switch tok {
		case tokenStart:
			if isFeedback(r.lex.name) {
				r.follows = true
				return between, junk, nil
			}
			between = true
			if len(r.stack.open) >= r.limits.Depth {
				return between, true, nil
			}
			if !r.lex.closed {
				r.stack.push(outside, r.lex.name, r.lex.attributes)
			}
		case tokenEnd:
			i := r.stack.named(r.lex.name)
			junk = junk || i < 0
			if i >= 0 {
				r.stack.cut(i, func(node) {})
			}
		case tokenDeclaration:
			between = true
			r.stack.declared = true
			r.stack.cut(0, func(node) {}) // another document begins
		case tokenDoctype:
			between = true
		default:
			junk = true
		}
	}
}

func isFeedback(name []byte) bool { return bytes.EqualFold(name, []byte("feedback")) }
