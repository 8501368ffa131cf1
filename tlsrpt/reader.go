package tlsrpt

import (
	"errors"
	"io"
)

// Reader reads the reports of a JSON document. Most have one; some have several in a list
// or in lines (NDJSON). It is not safe for concurrent use.
type Reader struct {
	in     io.Reader
	limits Limits
	lex    *lexer
	head   tally // the quirks of the document's encoding
	quirks tally // the quirks of the current report
	// listed is true if the reports are in a list.
	listed bool
	// resumed is true after invalid JSON: what follows may be a fragment of it, and is
	// ignored unless it is a report.
	resumed bool
	ended   error
}

// NewReader returns a reader for the reports in a document. It reads nothing yet. If in
// returns io.ErrUnexpectedEOF, as a truncated archive does, the complete policies before
// it are read.
func NewReader(in io.Reader, limits Limits) *Reader {
	return &Reader{in: in, limits: limits.orDefault()}
}

// Next returns the next report. All members of RFC 8460 §4.4 are optional, as long as the
// document is recognizable as a TLS report.
//
// It returns io.EOF after the last report, but a *RejectedError if the document contains
// none. It also returns a *RejectedError for an unusable report, which others may follow,
// and the error of the underlying reader.
func (r *Reader) Next() (Report, error) {
	for {
		if r.ended != nil {
			return Report{}, r.ended
		}
		resumed := r.resumed
		report, err := r.next()
		rejected := new(RejectedError)
		if err != nil && !errors.As(err, &rejected) {
			r.ended = err
		}
		if err == nil || !resumed || !errors.As(err, &rejected) || rejected.Why == RejectedLimit {
			return report, err
		}
	}
}

func (r *Reader) next() (Report, error) {
	if r.lex == nil {
		if err := r.begin(); err != nil {
			r.ended = io.EOF
			return Report{}, err
		}
	}
	r.quirks = r.head
	r.quirks.NoteIf(r.listed, StrayWrapper)
	reading := reportReader{document: document{lex: r.lex, limits: r.limits, quirks: &r.quirks}}
	report, damage, err := reading.read()
	if end := r.readRest(damage, err); end != nil {
		if !errors.Is(end, io.EOF) {
			return Report{}, end
		}
		r.ended = end
	}
	report.Quirks = r.quirks.Counts()
	if err != nil {
		return Report{}, err
	}
	return report, nil
}

// begin finds the first report.
func (r *Reader) begin() error {
	in, err := inUTF8(r.in, &r.head)
	if err != nil {
		return err
	}
	r.lex = newLexer(in, r.limits.TextBytes, &r.quirks)
	first, err := r.lex.peekPastBlanks()
	switch {
	case errors.Is(err, errTruncated):
		return reject(RejectedEmpty, "the document is empty")
	case err != nil:
		return err
	case first == '<':
		return reject(RejectedXML, "the content is XML or HTML and not JSON")
	case first != '{' && first != '[':
		return reject(RejectedNotJSON, "the content is not a JSON object")
	case first == '{':
		return nil
	}
	r.listed = true
	if _, err := r.lex.next(); err != nil {
		return err
	}
	switch first, err = r.lex.peekPastBlanks(); {
	case errors.Is(err, errTruncated):
		return reject(RejectedNotJSON, "the content is not JSON")
	case err != nil:
		return err
	case first != '{':
		return reject(RejectedOtherJSON, "the content is JSON but not an object")
	}
	return nil
}

// readRest skips to the next report. It returns io.EOF if there is none.
func (r *Reader) readRest(damage, rejection error) error {
	rejected := new(RejectedError)
	switch {
	case errors.Is(damage, errTruncated):
		return io.EOF
	case damage != nil:
		r.resumed = true
		return r.lex.skipToObject()
	case rejection != nil && (!errors.As(rejection, &rejected) || rejected.Why == RejectedLimit):
		return io.EOF
	}
	for {
		c, err := r.lex.peekPastBlanks()
		switch {
		case errors.Is(err, errTruncated):
			return io.EOF
		case err != nil:
			return err
		case c == '{':
			return nil
		case c == ',' && r.listed:
		case c == ']' && r.listed:
			r.listed = false
		case c == '[' && !r.listed:
			r.listed = true
		default:
			r.quirks.Note(TrailingJunk)
			return io.EOF
		}
		if _, err := r.lex.next(); err != nil {
			return err
		}
	}
}
