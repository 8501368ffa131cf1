package unpack

import (
	"bufio"
	"io"

	"github.com/klauspost/compress/flate"
)

// Walker walks through inputs one after another and reuses its buffers, which makes
// walks through many small inputs faster. The zero value is ready for use. It is not safe
// for concurrent use.
type Walker struct {
	inflaters []*inflater
	gzips     []*gzipStream
	buffers   []*bufio.Reader // of sniffBytes
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
