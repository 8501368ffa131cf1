package aggregate

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"iter"
	"strings"
)

// Reader reads the reports of a document, of which most have one. It is not safe
// for concurrent use.
type Reader struct {
	in     io.Reader
	limits Limits
	lex    *lexer
	// decoded says that a decoder has put U+FFFD in the place of bad bytes.
	decoded bool
	quirks  tally
	strings map[string]string
	latest  [nodeCount]string // the last value of each element

	stack stack
	root  int    // how many elements are around the report
	home  string // the namespace of the report, "" if it has none
	seen  uint64 // the elements met that may occur once
	value []byte // the text of the open value

	report   Report
	record   Record
	row      rowText
	complete bool // record is to be handed out
	begun    int  // records that were begun
	met      int  // records that were complete, whether they count or not
	// firstFrom is the first author domain that a record names.
	firstFrom string
	// follows says that the lexer is at the start tag of another report, begins that
	// reading it begins there.
	follows, begins bool
	encoding        tally // the quirks of the document's encoding
	// before and behind are where the report before this one, and this one, end.
	before, behind int64
	organize       map[string]string
	content        hash.Hash
	scratch        []byte
	ended          error
}

// NewReader returns a reader of the report in the document. Nothing is read yet.
// Where in ends with io.ErrUnexpectedEOF, as an archive that was cut off does, the
// complete records of what came before are read.
func NewReader(in io.Reader, limits Limits) *Reader {
	return &Reader{
		in:       in,
		limits:   limits.orDefault(),
		strings:  make(map[string]string),
		organize: make(map[string]string),
		content:  sha256.New(),
	}
}

// Next returns the next record, which is the caller's to keep. It returns io.EOF
// after the last one, a *RefusedError where the document is no report that can be
// used, and the error of the underlying reader. What was read before an error
// other than io.EOF is not to be used.
func (r *Reader) Next() (Record, error) {
	if r.ended == nil {
		r.ended = r.advance()
	}
	if r.ended != nil {
		return Record{}, r.ended
	}
	return r.record, nil
}

// All returns the records up to the end or the first error, which comes with an
// empty record.
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

// Report returns what has been read of the report so far. It is whole once Next
// has returned io.EOF; most reporters write all of it but Quirks, Records and
// Content before the first record.
func (r *Reader) Report() Report {
	report := r.report
	report.Dialect = r.dialect()
	report.Quirks = r.quirks.counts()
	return report
}

// advance reads up to the end of the next record that counts.
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

// broken ends a report that the lexer can read no further.
func (r *Reader) broken(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return r.finish(true)
	case !errors.Is(err, errTooLong):
		return err
	case r.stack.rootName == "":
		return refuse(RefusedNotXML, "the content is not XML")
	default:
		return refuse(RefusedLimit, "a text or tag is too long")
	}
}

// begin looks at the beginning of the document.
func (r *Reader) begin() error {
	in, decoded, err := inUTF8(r.in, &r.quirks)
	if err != nil {
		return err
	}
	r.decoded = decoded
	r.lex = newLexer(in, runFactor*r.limits.TextBytes, &r.quirks)
	blanks, err := r.lex.skipBlanks()
	if err != nil {
		return err
	}
	head := r.lex.window[r.lex.pos:r.lex.end]
	switch {
	case len(head) == 0:
		return refuse(RefusedEmpty, "the document is empty")
	case head[0] == '{' || head[0] == '[':
		return refuse(RefusedJSON, "the content is JSON and not XML")
	case strings.EqualFold(string(bytes.TrimSpace(head)), "unused"):
		return refuse(RefusedUnused, `the document is the word "unused": the reporter had nothing to report`)
	}
	r.encoding = r.quirks
	declaration := bytes.HasPrefix(head, []byte("<?xml"))
	r.quirks.noteIf(blanks && declaration, LeadingJunk)
	return nil
}

// take handles one token.
func (r *Reader) take(tok token) error {
	switch tok {
	case tokenText:
		return r.takeText(r.lex.text, false)
	case tokenVerbatim:
		return r.takeText(r.lex.text, true)
	case tokenDeclaration:
		r.stack.declared = true
		number := attribute(r.lex.text[len("<?xml"):], "version")
		r.quirks.noteIf(string(number) != "1.0", XMLVersion)
	case tokenDoctype:
		r.quirks.note(DocumentType)
		if name := bytes.TrimSpace(r.lex.text[len("<!DOCTYPE"):]); r.isHTML(name) {
			return refuse(RefusedHTML, "the content is a web page")
		}
	case tokenStart:
		return r.start()
	case tokenEnd:
		r.end()
	}
	return nil
}

// isHTML reports whether a name, perhaps with something behind it, says that the
// document is a web page.
func (r *Reader) isHTML(name []byte) bool {
	const html = "html"
	return r.stack.rootName == "" && len(name) >= len(html) && bytes.EqualFold(name[:len(html)], []byte(html)) &&
		(len(name) == len(html) || !isNameByte(name[len(html)]))
}

// takeText adds text to the open value, and notes text that is not in one.
func (r *Reader) takeText(text []byte, verbatim bool) error {
	switch top := r.stack.top(); {
	case top.isValue():
		return r.addText(text, verbatim)
	case top == reason:
		return r.addReasonText(text, verbatim)
	case top == ignored || top == extension:
	case len(bytes.TrimSpace(text)) == 0:
	case top == outside:
		r.quirks.note(LeadingJunk)
	default:
		r.quirks.note(StrayText)
	}
	return nil
}

// addText adds text to the open value.
func (r *Reader) addText(text []byte, verbatim bool) error {
	r.value = r.appendText(r.value, text, verbatim)
	if len(r.value) > r.limits.TextBytes {
		return refuse(RefusedLimit, "a value is too long")
	}
	return nil
}

// addReasonText adds text that stands in a reason and in none of its elements.
func (r *Reader) addReasonText(text []byte, verbatim bool) error {
	r.row.reasonText = r.appendText(r.row.reasonText, text, verbatim)
	if len(r.row.reasonText) > r.limits.TextBytes {
		return refuse(RefusedLimit, "a value is too long")
	}
	return nil
}

// finish ends the report. It returns io.EOF where the report is one.
func (r *Reader) finish(early bool) error {
	if !r.has(feedback) {
		return r.refuseOther()
	}
	if early {
		r.quirks.note(Truncated)
		r.behind = r.offset()
		r.stack.cut(r.root, r.cutOff)
	} else if err := r.readRest(); err != nil {
		return err
	}
	if r.met == 0 && (early || r.quirks[MismatchedTags] > 0) {
		return refuse(RefusedDamaged, "the report is damaged and has no complete record")
	}
	if err := r.checkHead(); err != nil {
		return err
	}
	r.sumContent()
	return io.EOF
}

// refuseOther refuses a document without a report.
func (r *Reader) refuseOther() error {
	if r.stack.rootName == "" {
		return refuse(RefusedNotXML, "the content is not XML")
	}
	return refuse(RefusedOtherXML, "the root element is <"+r.stack.rootName+">, not <feedback>")
}

// offset returns how many bytes of the document in UTF-8 were used.
func (r *Reader) offset() int64 { return r.lex.passed + int64(r.lex.pos) }

func (r *Reader) has(n node) bool { return r.seen&(1<<n) != 0 }
