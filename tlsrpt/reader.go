package tlsrpt

import (
	"errors"
	"io"
)

// Reader reads the reports of a JSON document. Most have one; some have several in a
// list, or one behind the other in lines (NDJSON). It is not safe for concurrent use.
type Reader struct {
	in     io.Reader
	limits Limits
	lex    *lexer
	head   tally // the quirks of the document's encoding
	quirks tally // those of the report that is being read
	// listed says that the reports are in a list.
	listed bool
	// resumed says that something before was not JSON: what follows may be a piece
	// of it, and is left out unless it is a report.
	resumed bool
	ended   error
}

// NewReader returns a reader of the reports in a document. Nothing is read yet. Where
// in ends with io.ErrUnexpectedEOF, as an archive that was cut off does, the complete
// policies of what came before are read.
func NewReader(in io.Reader, limits Limits) *Reader {
	return &Reader{in: in, limits: limits.orDefault()}
}

// Next reads the next report. Nothing of RFC 8460 §4.4 has to be there but enough of
// it to tell that it is a TLS report.
//
// It returns io.EOF after the last report, but a *RefusedError where the document has
// none. It returns a *RefusedError for a report that cannot be used, too, after which
// others may follow, and the error of the underlying reader.
func (r *Reader) Next() (Report, error) {
	for {
		if r.ended != nil {
			return Report{}, r.ended
		}
		resumed := r.resumed
		report, err := r.next()
		refused := new(RefusedError)
		if err != nil && !errors.As(err, &refused) {
			r.ended = err
		}
		if err == nil || !resumed || !errors.As(err, &refused) || refused.Why == RefusedLimit {
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
	r.quirks.noteIf(r.listed, StrayWrapper)
	reading := reportReader{document: document{lex: r.lex, limits: r.limits, quirks: &r.quirks}}
	report, damage, err := reading.read()
	if end := r.readRest(damage, err); end != nil {
		if !errors.Is(end, io.EOF) {
			return Report{}, end
		}
		r.ended = end
	}
	report.Quirks = r.quirks.counts()
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
		return refuse(RefusedEmpty, "the document is empty")
	case err != nil:
		return err
	case first == '<':
		return refuse(RefusedXML, "the content is XML or HTML and not JSON")
	case first != '{' && first != '[':
		return refuse(RefusedNotJSON, "the content is not a JSON object")
	case first == '{':
		return nil
	}
	r.listed = true
	if _, err := r.lex.next(); err != nil {
		return err
	}
	switch first, err = r.lex.peekPastBlanks(); {
	case errors.Is(err, errTruncated):
		return refuse(RefusedNotJSON, "the content is not JSON")
	case err != nil:
		return err
	case first != '{':
		return refuse(RefusedOtherJSON, "the content is JSON but not an object")
	}
	return nil
}

// readRest reads what follows a report up to the next one, which it leaves to be
// read. It returns io.EOF where there is none.
func (r *Reader) readRest(damage, refusal error) error {
	refused := new(RefusedError)
	switch {
	case errors.Is(damage, errTruncated):
		return io.EOF
	case damage != nil:
		r.resumed = true
		return r.lex.skipToObject()
	case refusal != nil && (!errors.As(refusal, &refused) || refused.Why == RefusedLimit):
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
			r.quirks.note(TrailingJunk)
			return io.EOF
		}
		if _, err := r.lex.next(); err != nil {
			return err
		}
	}
}
