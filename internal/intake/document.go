package intake

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
)

// keptInMemory is how many bytes of a document are kept in memory before a temporary
// file is made: nearly every report is shorter.
const keptInMemory = 1 << 20

// document is a copy of what was read, to read it again. Its length is bounded by
// the limits on what it is copied from.
type document struct {
	folder string // of temporary files, "" for that of the system
	memory bytes.Buffer
	file   *os.File // holds what does not fit into memory, nil if nothing
	size   int64
}

// Write adds to the document.
func (d *document) Write(p []byte) (int, error) {
	if d.file == nil && d.memory.Len()+len(p) <= keptInMemory {
		d.size += int64(len(p))
		return d.memory.Write(p)
	}
	if err := d.open(); err != nil {
		return 0, err
	}
	n, err := d.file.Write(p)
	d.size += int64(n)
	return n, err
}

// open makes the temporary file where there is none.
func (d *document) open() error {
	if d.file != nil {
		return nil
	}
	file, err := os.CreateTemp(d.folder, "dmarcd-intake-*")
	if err != nil {
		return fmt.Errorf("keep a copy of the report: %w", err)
	}
	d.file = file
	// The data lives as long as the file is open. Without a name nothing stays
	// behind, however the process ends.
	if err := os.Remove(file.Name()); err != nil {
		return fmt.Errorf("keep a copy of the report: %w", err)
	}
	return nil
}

// reader reads the document from its beginning.
func (d *document) reader(ctx context.Context) io.Reader {
	memory := bytes.NewReader(d.memory.Bytes())
	if d.file == nil {
		return stoppable{memory, ctx.Err}
	}
	rest := io.NewSectionReader(d.file, 0, d.size-memory.Size())
	return stoppable{io.MultiReader(memory, rest), ctx.Err}
}

// release gives the space back.
func (d *document) release() {
	if d.file != nil {
		_ = d.file.Close() // nothing of it is needed any more
	}
}

// stoppable is a reader that ends with the context whose Err it is given.
type stoppable struct {
	r       io.Reader
	stopped func() error
}

func (s stoppable) Read(p []byte) (int, error) {
	if err := s.stopped(); err != nil {
		return 0, err
	}
	return s.r.Read(p)
}
