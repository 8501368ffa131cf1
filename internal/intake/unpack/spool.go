package unpack

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// spoolInMemory is how many bytes are kept in memory before a temporary file is
// made: nearly every archive of a report is smaller.
const spoolInMemory = 256 << 10

// sized is content that can be read at any offset.
type sized interface {
	io.ReaderAt
	Size() int64
}

// guarded reads at any offset, and ends the walk where that fails: a disk that
// cannot be read is no damage of the report.
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

// inPlace returns content that can be read at any offset, guarded.
func (w *walker) inPlace(r io.ReaderAt, size int64) *io.SectionReader {
	return io.NewSectionReader(guarded{r, w.budget}, 0, size)
}

// spooled is content that was read from a stream.
type spooled struct {
	*io.SectionReader

	file *os.File // nil if it is in memory
	// damage says that the stream broke before its end.
	damage error
}

// spool reads r to its end so that it can be read at any offset. How much that
// may be is bounded by the readers below r. The errors it returns end the walk,
// but for a LimitError that concerns this stream alone.
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
	file, err := os.CreateTemp(w.budget.limits.Folder, "dmarcd-unpack-*")
	if err != nil {
		return nil, w.budget.fail(err)
	}
	s := &spooled{file: file}
	// The data lives as long as the file is open. Without a name nothing stays
	// behind, however the process ends.
	if err := os.Remove(file.Name()); err != nil {
		s.release()
		return nil, w.budget.fail(err)
	}
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

// note keeps an error that only says that the stream is damaged, and returns
// any other.
func (s *spooled) note(err error, b *budget) error {
	if err == nil {
		return nil
	}
	if stop := b.refuses(err); stop != nil {
		return stop
	}
	s.damage = damaged(err)
	return nil
}

// release gives the space back.
func (s *spooled) release() {
	if s.file != nil {
		_ = s.file.Close() // nothing of it is needed any more
	}
}

// fileWriter ends the walk where a temporary file cannot be written: a full
// disk is no damage of the report.
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
