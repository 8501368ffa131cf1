package aggregate

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"iter"
	"strings"
)

// Reader reads the reports of a document; most have one. It is not safe for concurrent
// use.
type Reader struct {
	in     io.Reader
	limits Limits
	lex    *lexer // nil until the first record is read
	// sniffer and window are buffers for the document.
	sniffer *bufio.Reader
	window  []byte
	// decoded is true if a decoder has replaced invalid bytes with U+FFFD.
	decoded bool
	quirks  tally
	strings map[string]string
	latest  [nodeCount]string // the last value of each element

	stack     stack
	root      int    // the number of elements around the report
	namespace string // the namespace of the report, "" if it has none
	seen      uint64 // the elements found so far that may occur once
	value     []byte // the text of the current value

	report   Report
	record   Record
	row      rowText
	reasons  slab[Reason]
	dkims    slab[DKIMResult]
	spfs     slab[SPFResult]
	complete bool // record is ready to be returned
	begun    int  // records started
	met      int  // complete records, including skipped ones
	// firstFrom is the From domain of the first record that has one.
	firstFrom string
	// follows is true if the lexer is at the start tag of another report, begins if
	// reading continues there.
	follows, begins bool
	encoding        tally // the quirks of the document's encoding
	// before and behind are the end offsets of the previous and the current report.
	before, behind int64
	organize       map[string]string
	content        hash.Hash
	scratch        []byte
	ended          error
}

// NewReader returns a reader for the reports in a document. It reads nothing yet. If in
// returns io.ErrUnexpectedEOF, as a truncated archive does, the complete records before
// it are returned.
func NewReader(in io.Reader, limits Limits) *Reader {
	return &Reader{
		in:       in,
		limits:   limits.orDefault(),
		strings:  make(map[string]string),
		organize: make(map[string]string),
		content:  sha256.New(),
	}
}

// Reset makes the reader equivalent to a new one, but reuses buffers and caches, which
// makes reading many small documents faster.
func (r *Reader) Reset(in io.Reader, limits Limits) {
	if r.lex != nil && len(r.lex.window) <= firstWindow {
		r.window = r.lex.window
	}
	r.content.Reset()
	*r = Reader{
		in: in, limits: limits.orDefault(), sniffer: r.sniffer, window: r.window, strings: r.strings, latest: r.latest,
		value: r.value[:0], row: r.row, stack: r.stack.reset(), reasons: r.reasons, dkims: r.dkims, spfs: r.spfs, organize: r.organize,
		content: r.content, scratch: r.scratch,
	}
}

// Next returns the next record, which the caller may retain. It returns io.EOF after the
// last one, a *RejectedError if the document is not a usable report, or the error of the
// underlying reader. After an error other than io.EOF, discard the records that were
// returned before.
func (r *Reader) Next() (Record, error) {
	if r.ended == nil {
		r.ended = r.advance()
	}
	if r.ended != nil {
		return Record{}, r.ended
	}
	return r.record, nil
}

// All returns the records up to the end or the first error, which comes with an empty
// record.
func (r *Reader) All() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for {
			record, err := r.Next()
			if errors.Is(err, io.EOF) || !yield(record, err) || err != nil {
				return
			}
		}
	}
}

// Report returns what has been read of the report so far. It is complete after Next has
// returned io.EOF. In most reports, everything except Quirks, Records and Content
// precedes the first record.
func (r *Reader) Report() Report {
	report := r.report
	report.Dialect = r.dialect()
	report.Quirks = r.quirks.Counts()
	return report
}

// advance reads to the end of the next valid record.
func (r *Reader) advance() error {
	if r.lex == nil {
		if err := r.begin(); err != nil {
			return err
		}
	}
	r.complete = false
	for !r.complete {
		tok, err := tokenStart, error(nil)
		if !r.begins {
			tok, err = r.lex.next(r.stack.top().isValue())
		}
		r.begins = false
		if err != nil {
			return r.broken(err)
		}
		if err := r.take(tok); err != nil {
			if errors.Is(err, errFollows) {
				r.follows = true
				return r.finish(true)
			}
			return err
		}
		if r.has(feedback) && r.stack.top() == outside {
			return r.finish(false)
		}
	}
	r.report.Records++
	r.addContent()
	return nil
}

// broken ends a report after an error of the lexer.
func (r *Reader) broken(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return r.finish(true)
	case !errors.Is(err, errTooLong):
		return err
	case r.stack.rootName == "":
		return reject(RejectedNotXML, "the content is not XML")
	default:
		return reject(RejectedLimit, "a text or tag is too long")
	}
}

// begin detects the encoding, and rejects documents that are not XML.
func (r *Reader) begin() error {
	if r.sniffer == nil {
		r.sniffer = bufio.NewReaderSize(nil, sniffed)
	}
	r.sniffer.Reset(r.in)
	in, decoded, err := inUTF8(r.sniffer, &r.quirks)
	if err != nil {
		return err
	}
	r.decoded = decoded
	r.lex = newLexer(in, r.window, runFactor*r.limits.TextBytes, &r.quirks)
	blanks, err := r.lex.skipBlanks()
	if err != nil {
		return err
	}
	head := r.lex.window[r.lex.pos:r.lex.end]
	switch {
	case len(head) == 0:
		return reject(RejectedEmpty, "the document is empty")
	case head[0] == '{' || head[0] == '[':
		return reject(RejectedJSON, "the content is JSON and not XML")
	case strings.EqualFold(string(bytes.TrimSpace(head)), "unused"):
		return reject(RejectedUnused, `the document is the word "unused": the reporter had nothing to report`)
	}
	r.encoding = r.quirks
	declaration := bytes.HasPrefix(head, []byte("<?xml"))
	r.quirks.NoteIf(blanks && declaration, LeadingJunk)
	return nil
}

func (r *Reader) take(tok token) error {
	switch tok {
	case tokenText:
		return r.takeText(r.lex.text, false)
	case tokenVerbatim:
		return r.takeText(r.lex.text, true)
	case tokenDeclaration:
		r.stack.declared = true
		number := attribute(r.lex.text[len("<?xml"):], "version")
		r.quirks.NoteIf(string(number) != "1.0", XMLVersion)
	case tokenDoctype:
		r.quirks.Note(DocumentType)
		if name := bytes.TrimSpace(r.lex.text[len("<!DOCTYPE"):]); r.isHTML(name) {
			return reject(RejectedHTML, "the content is a web page")
		}
	case tokenStart:
		return r.start()
	case tokenEnd:
		r.end()
	}
	return nil
}

// isHTML reports whether a name, possibly with characters after it, belongs to an HTML
// document.
func (r *Reader) isHTML(name []byte) bool {
	const html = "html"
	return r.stack.rootName == "" && len(name) >= len(html) && bytes.EqualFold(name[:len(html)], []byte(html)) &&
		(len(name) == len(html) || !isNameByte(name[len(html)]))
}

// takeText adds text to the current value, and notes text outside of values.
func (r *Reader) takeText(text []byte, verbatim bool) error {
	switch top := r.stack.top(); {
	case top.isValue():
		return r.addText(&r.value, text, verbatim)
	case top == reason:
		return r.addText(&r.row.reasonText, text, verbatim)
	case top == ignored || top == extension:
	case len(bytes.TrimSpace(text)) == 0:
	case top == outside:
		r.quirks.Note(LeadingJunk)
	default:
		r.quirks.Note(StrayText)
	}
	return nil
}

// addText appends decoded text to a value.
func (r *Reader) addText(value *[]byte, text []byte, verbatim bool) error {
	*value = r.appendText(*value, text, verbatim)
	if len(*value) > r.limits.TextBytes {
		return reject(RejectedLimit, "a value is too long")
	}
	return nil
}

// finish completes the report. It returns io.EOF if the report is usable.
func (r *Reader) finish(early bool) error {
	if !r.has(feedback) {
		return r.rejectOther()
	}
	if early {
		r.quirks.Note(Truncated)
		r.behind = r.offset()
		r.stack.cut(r.root, r.cutOff)
	} else if err := r.readRest(); err != nil {
		return err
	}
	if r.met == 0 && (early || r.quirks.Has(MismatchedTags)) {
		return reject(RejectedDamaged, "the report is damaged and has no complete record")
	}
	if err := r.checkHead(); err != nil {
		return err
	}
	r.hashContent()
	return io.EOF
}

// rejectOther rejects a document without a report.
func (r *Reader) rejectOther() error {
	if r.stack.rootName == "" {
		return reject(RejectedNotXML, "the content is not XML")
	}
	return reject(RejectedOtherXML, "the root element is <"+r.stack.rootName+">, not <feedback>")
}

// offset returns the number of bytes consumed, in UTF-8.
func (r *Reader) offset() int64 { return r.lex.passed + int64(r.lex.pos) }

func (r *Reader) has(n node) bool { return r.seen&(1<<n) != 0 }

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
