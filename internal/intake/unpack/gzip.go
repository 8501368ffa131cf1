package unpack

import (
	"bufio"
	"compress/bzip2"
	"errors"
	"io"
	"regexp"
	"strconv"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
)

// joined matches the beginning of a separate report.
var joined = regexp.MustCompile(`(?i)^(<\?xml\b|<([\w.-]+:)?feedback\b|\{\s*"(organization-name|date-range|contact-info|report-id)"\s*:)`)

// gzip walks through gzip data (RFC 1952). Several members are one content (§2.2), unless
// a member starts like a document: then a gateway has concatenated reports. Bytes after
// the last member are ignored.
func (w *walker) gzip(r io.Reader, at location) error {
	stream := w.gunzip(r)
	defer func() { w.gzips = append(w.gzips, stream) }()
	content := &meter{r: stream, from: stream.from, budget: w.budget}
	for document := 1; ; document++ {
		if err := w.budget.member(); err != nil {
			return err
		}
		name := ""
		if document > 1 {
			name = strconv.Itoa(document)
		}
		if err := w.content(content, at.in(name)); err != nil {
			return err
		}
		// The visitor may not have read all of the part; the next one starts at its end.
		if _, err := io.Copy(io.Discard, content); err != nil {
			return w.budget.alive() // the reader has already seen the damage or limit
		}
		if !stream.another {
			return nil
		}
		stream.another = false
	}
}

// zlib walks through zlib data (RFC 1950).
func (w *walker) zlib(r io.Reader, at location) error {
	if err := w.budget.member(); err != nil {
		return err
	}
	from := &counter{r: r}
	z, err := zlib.NewReader(from)
	if err != nil {
		return w.reject(at, damaged(err))
	}
	return w.content(&meter{r: z, from: from, budget: w.budget}, at.in(""))
}

// bzip2 walks through bzip2 data.
func (w *walker) bzip2(r io.Reader, at location) error {
	if err := w.budget.member(); err != nil {
		return err
	}
	from := &counter{r: r}
	return w.content(&meter{r: bzip2.NewReader(from), from: from, budget: w.budget}, at.in(""))
}

// gzipStream reads gzip members up to the start of the next document.
type gzipStream struct {
	from   *counter
	packed *bufio.Reader // over from
	z      *gzip.Reader
	member *bufio.Reader // over z, to peek at the start of a member
	opened bool          // the first member has been opened
	// another is set if reading stopped at the start of a new document.
	another bool
}

// gunzip returns a stream of the gzip data in r.
func (w *Walker) gunzip(r io.Reader) *gzipStream {
	s := take(&w.gzips)
	if s == nil {
		s = &gzipStream{packed: bufio.NewReader(nil), z: new(gzip.Reader), member: bufio.NewReaderSize(nil, sniffBytes)}
	}
	s.from = &counter{r: r}
	s.packed.Reset(s.from)
	s.opened, s.another = false, false
	return s
}

func (s *gzipStream) Read(p []byte) (int, error) {
	for !s.another {
		if !s.opened {
			if err := s.first(); err != nil {
				return 0, err
			}
		}
		n, err := s.member.Read(p)
		if n > 0 || err == nil {
			return n, nil // the next Read returns an error
		}
		if !errors.Is(err, io.EOF) {
			return 0, err
		}
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	return 0, io.EOF
}

// first opens the first member.
func (s *gzipStream) first() error {
	if err := s.z.Reset(s.packed); err != nil {
		return noEOF(err)
	}
	s.z.Multistream(false)
	s.member.Reset(s.z)
	s.opened = true
	return nil
}

// next opens the following member. It returns io.EOF if there is none.
func (s *gzipStream) next() error {
	magic, _ := s.packed.Peek(len(magicGzip)) // a short read means that nothing follows
	if string(magic) != string(magicGzip) {
		return io.EOF
	}
	if err := s.z.Reset(s.packed); err != nil {
		return noEOF(err)
	}
	s.z.Multistream(false)
	s.member.Reset(s.z)
	head, _ := s.member.Peek(sniffBytes) // the next Read returns an error
	s.another = joined.Match(plain(head))
	return nil
}

// noEOF turns an unexpected io.EOF into io.ErrUnexpectedEOF.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// take removes the last element of a list of idle buffers. It returns nil if there is
// none.
func take[T any](idle *[]*T) *T {
	n := len(*idle)
	if n == 0 {
		return nil
	}
	last := (*idle)[n-1]
	*idle = (*idle)[:n-1]
	return last
}

// buffer returns a reader of r. Call release when done.
func (w *Walker) buffer(r io.Reader) *bufio.Reader {
	b := take(&w.buffers)
	if b == nil {
		return bufio.NewReaderSize(r, sniffBytes)
	}
	b.Reset(r)
	return b
}

// release returns a reader for reuse.
func (w *Walker) release(b *bufio.Reader) {
	b.Reset(nil)
	w.buffers = append(w.buffers, b)
}

// inflater reads deflate data. Its tables take 40 KiB, so a closed one is reused for the
// next member of an archive.
type inflater struct {
	io.ReadCloser

	w *Walker
}

// inflate returns a reader of the deflate data in r.
func (w *Walker) inflate(r io.Reader) io.ReadCloser {
	z := take(&w.inflaters)
	if z == nil || z.ReadCloser.(flate.Resetter).Reset(r, nil) != nil {
		return &inflater{flate.NewReader(r), w}
	}
	return z
}

// Close returns the inflater for reuse. It must not be read afterwards.
func (z *inflater) Close() error {
	z.w.inflaters = append(z.w.inflaters, z)
	return nil
}
