package unpack

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd/internal/tempfile"
)

// walker walks through one input.
type walker struct {
	*Walker

	budget *budget
	visit  Visit
	parts  int // number passed to visit
}

// location is the position of a piece of content.
type location struct {
	path   string
	depth  int // number of enclosing containers
	media  string
	mail   *mail // innermost enclosing mail, nil if none
	inside bool  // content is the body of a part of that mail, not in an archive
	damage error // damage of the enclosing container
}

// in returns the location of a member of the container at this location.
func (at location) in(name string) location {
	at.path = joinPath(at.path, name)
	at.depth++
	at.inside = false
	return at
}

func (at location) part(kind Kind) *Part {
	return &Part{Kind: kind, Path: at.path, damage: at.damage}
}

// hand passes a part to the visitor.
func (w *walker) hand(p *Part) error {
	w.parts++
	p.budget = w.budget
	if err := w.visit(p); err != nil {
		return w.budget.fail(err)
	}
	return w.budget.alive()
}

// reject passes on a part that cannot be read.
func (w *walker) reject(at location, reason error) error {
	p := at.part(Rejected)
	p.Err = reason
	return w.hand(p)
}

// content detects the format of r, and passes it on or opens it. Like all methods of
// walker, it only returns errors that end the walk.
func (w *walker) content(r io.Reader, at location) error {
	buffered := w.buffer(r)
	defer w.release(buffered)
	head, err := buffered.Peek(sniffBytes)
	if err := w.budget.alive(); err != nil {
		return err
	}
	if len(head) == 0 && !errors.Is(err, io.EOF) {
		if limit := w.budget.reject(err); limit != nil {
			return w.reject(at, limit)
		}
		return w.reject(at, damaged(err))
	}
	f, sure := sniff(head)
	if at.inside && !wanted(f, sure, at.media) {
		return nil
	}
	switch f {
	case formatXML:
		return w.document(Aggregate, buffered, at)
	case formatJSON:
		return w.document(TLS, buffered, at)
	case formatFeedback:
		return w.feedback(buffered, at)
	case formatEmpty:
		return w.reject(at, errEmpty)
	case formatUnused:
		return w.reject(at, errUnused)
	case formatUnknown:
		return w.reject(at, fmt.Errorf("this is %s, %w", describe(head), errUnknown))
	default:
		return w.open(f, r, buffered, at)
	}
}

// open walks through a container.
func (w *walker) open(f format, r io.Reader, buffered *bufio.Reader, at location) error {
	if at.depth >= w.budget.limits.Nesting {
		return w.reject(at, &LimitError{Limit: LimitNesting, Max: int64(w.budget.limits.Nesting)})
	}
	switch f {
	case formatGzip:
		return w.gzip(buffered, at)
	case formatZlib:
		return w.zlib(buffered, at)
	case formatZip:
		if in, ok := r.(*input); ok {
			if s, ok := in.r.(sized); ok {
				return w.zip(w.guarded(s, s.Size()), at)
			}
		}
		return w.zipStream(buffered, at)
	case formatBzip2:
		return w.bzip2(buffered, at)
	case formatEmlx:
		return w.emlx(buffered, at)
	case formatUU:
		return w.uu(buffered, at)
	case formatBase64:
		return w.content(&base64Reader{r: buffered}, at.in(""))
	case formatMbox:
		return w.mbox(buffered, at)
	default:
		return w.mail(buffered, at)
	}
}

// document passes on a report.
func (w *walker) document(kind Kind, r io.Reader, at location) error {
	p := at.part(kind)
	p.content = r
	return w.hand(p)
}

const (
	maxName  = 255  // of one name in a path, in bytes
	maxPath  = 1024 // of a path, in bytes
	maxField = 998  // of a header field shown to users, in bytes (RFC 5322 §2.1.1)
)

// joinPath appends an untrusted name to a path. It removes path traversal and control
// characters.
func joinPath(parent, name string) string {
	name = clean(strings.ReplaceAll(name, `\`, "/"))
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	name = distinct(name, maxName)
	switch {
	case name == "":
		return parent
	case parent == "":
		return name
	default:
		return distinct(parent+"/"+name, maxPath)
	}
}

// decoded returns a header field as readable text.
func decoded(field string) string {
	if text, err := new(mime.WordDecoder).DecodeHeader(field); err == nil {
		field = text
	}
	return shorten(strings.TrimSpace(clean(field)), maxField)
}

// clean removes unprintable characters and replaces invalid UTF-8.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
}

// distinct truncates a long path. It ends with a hash then: the path identifies a rejected item.
func distinct(path string, maxBytes int) string {
	if len(path) <= maxBytes {
		return path
	}
	hash := sha256.Sum256([]byte(path))
	end := "~" + hex.EncodeToString(hash[:8])
	return shorten(path, maxBytes-len(end)) + end
}

// shorten truncates valid UTF-8 to a number of bytes, between runes.
func shorten(s string, maxBytes int) string {
	if len(s) <= maxBytes {
		return s
	}
	for !utf8.RuneStart(s[maxBytes]) {
		maxBytes--
	}
	return s[:maxBytes]
}

// spoolInMemory is the number of bytes kept in memory before a temporary file is created.
// Nearly all archives with reports are smaller.
const spoolInMemory = 256 << 10

type sized interface {
	io.ReaderAt
	Size() int64
}

// guarded is an io.ReaderAt whose errors end the walk: a disk error is not a damaged
// report.
type guarded struct {
	r      io.ReaderAt
	budget *budget
}

func (g guarded) ReadAt(p []byte, offset int64) (int, error) {
	if err := g.budget.alive(); err != nil {
		return 0, err
	}
	n, err := g.r.ReadAt(p, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		err = g.budget.fail(err)
	}
	return n, err
}

// guarded returns a guarded reader of r.
func (w *walker) guarded(r io.ReaderAt, size int64) *io.SectionReader {
	return io.NewSectionReader(guarded{r, w.budget}, 0, size)
}

// spooled is the content of a stream, readable at any offset.
type spooled struct {
	*io.SectionReader

	file *os.File // nil if it is in memory
	// damage is set if the stream is truncated.
	damage error
}

// spool reads all of r. The readers below r limit its size. Errors end the walk, except
// for a LimitError that concerns only this stream.
func (w *walker) spool(r io.Reader) (*spooled, error) {
	var s spooled
	head, err := io.ReadAll(io.LimitReader(r, spoolInMemory))
	if err == nil && len(head) == spoolInMemory {
		return w.spoolFile(head, r)
	}
	if err := s.note(err, w.budget); err != nil {
		return nil, err
	}
	s.SectionReader = w.guarded(bytes.NewReader(head), int64(len(head)))
	return &s, nil
}

// spoolFile writes head and the rest of r to a temporary file.
func (w *walker) spoolFile(head []byte, r io.Reader) (*spooled, error) {
	file, err := tempfile.Create(w.budget.limits.Folder)
	if err != nil {
		return nil, w.budget.fail(err)
	}
	s := &spooled{file: file}
	if _, err := file.Write(head); err != nil {
		s.release()
		return nil, w.budget.fail(err)
	}
	n, err := io.Copy(fileWriter{file, w.budget}, r)
	if err := s.note(err, w.budget); err != nil {
		s.release()
		return nil, err
	}
	s.SectionReader = w.guarded(file, int64(len(head))+n)
	return s, nil
}

// note stores an error that means a damaged stream, and returns all others.
func (s *spooled) note(err error, b *budget) error {
	if err == nil {
		return nil
	}
	if stop := b.reject(err); stop != nil {
		return stop
	}
	s.damage = damaged(err)
	return nil
}

// release frees the memory or the file.
func (s *spooled) release() { tempfile.Discard(s.file) }

// fileWriter ends the walk if a temporary file cannot be written: a full disk is not a
// damaged report.
type fileWriter struct {
	file   *os.File
	budget *budget
}

func (w fileWriter) Write(p []byte) (int, error) {
	n, err := w.file.Write(p)
	if err != nil {
		err = w.budget.fail(err)
	}
	return n, err
}
