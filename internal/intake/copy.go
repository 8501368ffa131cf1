package intake

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake/unpack"
	"github.com/dmarcd/dmarcd/internal/tempfile"
)

// copyInMemory is the size above which a copy moves to a temporary file. Most messages are
// smaller.
const copyInMemory = 256 << 10

// Copy is a seekable copy of a stream, in memory if it is short, else in an unlinked temporary
// file. Only reads are safe for concurrent use.
type Copy struct {
	folder string // for temporary files, "" for the system default
	memory []byte
	file   *os.File // all of the data, once it exceeds copyInMemory
	size   int64
}

// CopyOf copies r to its end. Long copies use a temporary file in folder; "" is the system
// default. It returns dmarcd.ErrLimit if r has more than maxBytes, the error of r, or
// dmarcd.ErrTemporary if a temporary file fails. Close the copy after use.
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

// CopyWritten is CopyOf for what write writes.
func CopyWritten(write func(io.Writer) error, folder string, maxBytes int64) (*Copy, error) {
	c := &Copy{folder: folder}
	if err := write(&limitedWriter{c, maxBytes}); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// limitedWriter fails when a copy gets longer than maxBytes.
type limitedWriter struct {
	copy     *Copy
	maxBytes int64
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	if w.copy.size+int64(len(p)) > w.maxBytes {
		return 0, &unpack.LimitError{Limit: unpack.LimitInput, Max: w.maxBytes}
	}
	return w.copy.Write(p)
}

// Size returns the number of bytes.
func (c *Copy) Size() int64 { return c.size }

// ReadAt implements io.ReaderAt. An error of the temporary file is a dmarcd.ErrTemporary.
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
		if n, err = c.file.ReadAt(p, offset); err != nil && !errors.Is(err, io.EOF) {
			err = fmt.Errorf("%w: read a copy: %w", dmarcd.ErrTemporary, err)
		}
	}
	if err == nil && short {
		err = io.EOF
	}
	return n, err
}

// Reader returns a reader over the whole copy.
func (c *Copy) Reader() *io.SectionReader { return io.NewSectionReader(c, 0, c.size) }

// Write appends to the copy. Its errors are dmarcd.ErrTemporary: a full disk is not the
// sender's fault.
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

// leaveMemory moves the copy to a temporary file.
func (c *Copy) leaveMemory() error {
	if c.file != nil {
		return nil
	}
	file, err := tempfile.Create(c.folder)
	if err != nil {
		return err
	}
	if _, err := file.Write(c.memory); err != nil {
		tempfile.Discard(file)
		return err
	}
	c.file, c.memory = file, nil
	return nil
}

// cut truncates the copy to size bytes.
func (c *Copy) cut(size int64) {
	c.size = size
	switch {
	case c.file == nil:
		c.memory = c.memory[:size]
	case size == 0:
		c.Close()
	}
}

// Close releases the space. The copy is empty afterwards.
func (c *Copy) Close() {
	tempfile.Discard(c.file)
	*c = Copy{folder: c.folder}
}

const (
	// packWindow is the window of the compression. It bounds memory; reports repeat within
	// much shorter distances.
	packWindow = 512 << 10
	// unpackMemory limits the memory for decompression.
	unpackMemory = 8 << 20
)

// packer compresses originals. It reuses encoders, which have large tables.
type packer struct{ idle sync.Pool }

// pack compresses the content of a message into a copy, and describes it. It stops at an error
// of ctx, the content or the copy.
func (p *packer) pack(ctx context.Context, m Message, to *Copy) (dmarcd.Original, error) {
	encoder, ok := p.idle.Get().(*zstd.Encoder)
	if !ok {
		var err error
		encoder, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(packWindow), zstd.WithLowerEncoderMem(true))
		if err != nil {
			return dmarcd.Original{}, err
		}
	}
	encoder.Reset(to)
	// Reset, or the pool would keep the copy alive.
	defer func() { encoder.Reset(nil); p.idle.Put(encoder) }()
	hash := sha256.New()
	content := stoppable{io.TeeReader(io.NewSectionReader(m.Content, 0, m.Size), hash), ctx.Err}
	size, err := encoder.ReadFrom(content)
	if err != nil {
		return dmarcd.Original{}, err
	}
	if err := encoder.Close(); err != nil {
		return dmarcd.Original{}, err
	}
	return dmarcd.Original{
		Hash: dmarcd.Hash(hash.Sum(nil)), Size: size,
		Packed: func() io.Reader { return to.Reader() }, PackedSize: to.Size(),
	}, nil
}

// Unpack decompresses an original. Damaged data returns an error on read.
func Unpack(packed io.Reader) io.Reader {
	// A single goroutine, that of the caller, needs no Close.
	decoder, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(unpackMemory), zstd.WithDecoderMaxWindow(packWindow))
	if err != nil {
		return stoppable{nil, func() error { return err }}
	}
	return decoder
}
