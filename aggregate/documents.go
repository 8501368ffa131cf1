package aggregate

import (
	"bytes"
	"errors"
	"io"
)

// errFollows means that another report starts before the current one has ended.
var errFollows = errors.New("another report begins")

// Another advances to the next report of a document with several, either concatenated or
// in a wrapper element. It returns false if there is none. Call it after Next has
// returned io.EOF or a *RejectedError: errors of one report do not affect the next. A
// report that exceeds a limit ends the document.
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

// Length returns the number of bytes that the report has consumed so far, in UTF-8,
// including those after the previous report.
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

// readRest skips to the next report. Blanks, comments, the end tags of wrapper elements,
// and anything required between two documents are not junk.
func (r *Reader) readRest() error {
	r.behind = r.offset()
	quirks := r.quirks // quirks after the report do not belong to it
	between, junk, err := r.skipToReport()
	r.quirks = quirks
	r.quirks.NoteIf(junk || between && !r.follows, TrailingJunk)
	return err
}

// skipToReport skips to the start tag of the next report. between is true if it skipped
// something that is valid only before another report, junk if it skipped something
// invalid.
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
			r.stack.cut(0, func(node) {}) // the start of another document
		case tokenDoctype:
			between = true
		default:
			junk = true
		}
	}
}

func isFeedback(name []byte) bool {
	const feedback = "feedback"
	return len(name) == len(feedback) && bytes.EqualFold(name, []byte(feedback))
}
