package unpack

import (
	"bytes"
	"errors"
	"io"
	"os"

	"github.com/dmarcd/dmarcd/internal/tempfile"
)

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

// inPlace returns a guarded reader of r.
func (w *walker) inPlace(r io.ReaderAt, size int64) *io.SectionReader {
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
	s.SectionReader = w.inPlace(bytes.NewReader(head), int64(len(head)))
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
	s.SectionReader = w.inPlace(file, int64(len(head))+n)
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
