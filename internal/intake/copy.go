package intake

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake/unpack"
)

// copyInMemory is how many bytes of a copy are kept in memory before a temporary file
// is made: nearly everything that is sent is shorter.
const copyInMemory = 256 << 10

// Copy is a copy of something that can only be read once. It is in memory where it is
// short, else in a temporary file without a name. It is not safe for concurrent use
// while it is written; reading it is.
type Copy struct {
	folder string // of temporary files, "" for that of the system
	memory []byte
	file   *os.File // holds all of it once it does not fit into memory
	size   int64
}

// CopyOf copies r to its end, into the folder for temporary files where it is long; ""
// is that of the system. It returns a dmarcd.ErrLimit if r has more than maxBytes, the
// error of r, or a dmarcd.ErrTemporary where a temporary file failed. The copy must be
// closed.
func CopyOf(r io.Reader, folder string, maxBytes int64) (*Copy, error) {
	c := &Copy{folder: folder}
	if _, err := io.Copy(c, io.LimitReader(r, maxBytes+1)); err != nil {
		c.Close()
		return nil, err
	}
	if c.size > maxBytes {
		c.Close()
		return nil, &unpack.LimitError{Limit: unpack.LimitInput, Max: maxBytes}
	}
	return c, nil
}

// Size is the number of bytes.
func (c *Copy) Size() int64 { return c.size }

// ReadAt reads at any offset, as io.ReaderAt asks for.
func (c *Copy) ReadAt(p []byte, offset int64) (int, error) {
	if offset < 0 {
		return 0, errors.New("read a copy: the offset is negative")
	}
	if offset >= c.size {
		return 0, io.EOF
	}
	short := c.size-offset < int64(len(p))
	if short {
		p = p[:c.size-offset]
	}
	n, err := len(p), error(nil)
	if c.file == nil {
		copy(p, c.memory[offset:])
	} else {
		n, err = c.file.ReadAt(p, offset)
	}
	if err == nil && short {
		err = io.EOF
	}
	return n, err
}

// Reader reads the copy from its beginning.
func (c *Copy) Reader() *io.SectionReader { return io.NewSectionReader(c, 0, c.size) }

// Write adds to the copy. Its errors are dmarcd.ErrTemporary: a full disk says nothing
// about what is copied.
func (c *Copy) Write(p []byte) (int, error) {
	if c.file == nil && c.size+int64(len(p)) <= copyInMemory {
		c.memory = append(c.memory, p...)
		c.size += int64(len(p))
		return len(p), nil
	}
	if err := c.leaveMemory(); err != nil {
		return 0, fmt.Errorf("%w: store a copy: %w", dmarcd.ErrTemporary, err)
	}
	n, err := c.file.WriteAt(p, c.size)
	c.size += int64(n)
	if err != nil {
		err = fmt.Errorf("%w: store a copy: %w", dmarcd.ErrTemporary, err)
	}
	return n, err
}

// leaveMemory moves the copy into a temporary file, unless it is in one.
func (c *Copy) leaveMemory() error {
	if c.file != nil {
		return nil
	}
	file, err := os.CreateTemp(c.folder, "dmarcd-intake-*")
	if err != nil {
		return err
	}
	// The data lives as long as the file is open. Without a name nothing stays
	// behind, however the process ends.
	if err := os.Remove(file.Name()); err != nil {
		return errors.Join(err, file.Close())
	}
	if _, err := file.Write(c.memory); err != nil {
		return errors.Join(err, file.Close())
	}
	c.file, c.memory = file, nil
	return nil
}

// cut takes away all but the first size bytes.
func (c *Copy) cut(size int64) {
	c.size = size
	switch {
	case c.file == nil:
		c.memory = c.memory[:size]
	case size == 0:
		c.Close()
	}
}

// Close gives the space back. The copy is empty after that.
func (c *Copy) Close() {
	if c.file != nil {
		_ = c.file.Close() // nothing of it is needed any more
	}
	*c = Copy{folder: c.folder}
}
