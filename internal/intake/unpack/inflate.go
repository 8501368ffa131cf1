package unpack

import (
	"io"

	"github.com/klauspost/compress/flate"
)

// inflater reads deflate data. Its tables take 40 KiB, so that one that is
// closed is used again for the next member of an archive.
type inflater struct {
	io.ReadCloser

	w *walker
}

// inflate returns a reader of the deflate data in r.
func (w *walker) inflate(r io.Reader) io.ReadCloser {
	n := len(w.idle)
	if n == 0 {
		return &inflater{flate.NewReader(r), w}
	}
	z := w.idle[n-1]
	if err := z.ReadCloser.(flate.Resetter).Reset(r, nil); err != nil {
		return &inflater{flate.NewReader(r), w}
	}
	w.idle = w.idle[:n-1]
	return z
}

// Close puts the reader aside. It must not be read after that.
func (z *inflater) Close() error {
	z.w.idle = append(z.w.idle, z)
	return nil
}
