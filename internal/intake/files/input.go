package files

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/intake/unpack"
)

// sniffBytes is how much of a file is read to detect an mbox: its first line.
const sniffBytes = 1024

// input is a file, or one mail of an mbox.
type input struct {
	name    string
	content io.ReaderAt
	size    int64
	// number is the position of the mail in its mbox, from 1; 0 for a whole file.
	number int
	// read is the approximate offset in the file after this input.
	read int64
	// last means that it is the end of the file.
	last bool
	// err is set if there is no content: dmarcd.ErrLimit, dmarcd.ErrInvalid, the error of the file, or
	// dmarcd.ErrTemporary if a temporary file failed.
	err error
}

// inputs yields the inputs of a file: each mail of an mbox, or what split yields, after the
// first passOver, or the whole file. An input is valid until the next one. The last one has
// last set, and may have no content.
func inputs(f File, limits unpack.Limits, passOver int, split func(io.Reader) iter.Seq2[func(io.Writer) error, error]) iter.Seq[input] {
	return func(yield func(input) bool) {
		file, err := os.Open(f.Path)
		if err != nil {
			yield(input{name: f.Path, err: err, last: true})
			return
		}
		defer func() { _ = file.Close() }() // read-only
		if split != nil {
			parts(f, file, limits, passOver, split, yield)
			return
		}
		head := make([]byte, sniffBytes)
		n, err := file.ReadAt(head, 0)
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			yield(input{name: f.Path, err: err, last: true})
		case unpack.IsMbox(head[:n]):
			mails(f, file, limits, passOver, yield)
		default:
			yield(whole(f, file, limits.Input))
		}
	}
}

// whole returns a file as one input.
func whole(f File, file *os.File, maxBytes int64) input {
	in := input{name: f.Path, content: file, read: f.Size, last: true}
	info, err := file.Stat()
	switch {
	case err != nil:
		in.err = err
	case info.Size() > maxBytes:
		in.err = &unpack.LimitError{Limit: unpack.LimitInput, Max: maxBytes}
	default:
		in.size = info.Size()
	}
	return in
}

func mails(f File, file io.Reader, limits unpack.Limits, passOver int, yield func(input) bool) {
	counted := &counter{r: file}
	number := 0
	for mail, err := range unpack.Messages(counted) {
		if err != nil {
			yield(input{name: f.Path, err: err, last: true})
			return
		}
		if number++; number <= passOver {
			continue
		}
		if !mailInput(f, mail, number, limits, counted, yield) {
			return
		}
	}
	yield(input{name: f.Path, read: counted.n, last: true})
}

// mailInput yields one mail of an mbox.
func mailInput(f File, mail io.Reader, number int, limits unpack.Limits, counted *counter, yield func(input) bool) bool {
	in := input{name: fmt.Sprintf("%s, mail %d", f.Path, number), number: number}
	held, err := intake.CopyOf(mail, limits.Folder, limits.Input)
	in.read = counted.n
	if err != nil {
		in.err = err
		return yield(in)
	}
	defer held.Close()
	in.content, in.size = held, held.Size()
	return yield(in)
}

// parts yields what split finds in a file.
func parts(f File, file io.Reader, limits unpack.Limits, passOver int, split func(io.Reader) iter.Seq2[func(io.Writer) error, error], yield func(input) bool) {
	counted := &counter{r: file}
	number := 0
	for write, err := range split(counted) {
		if number++; number <= passOver {
			continue
		}
		if err != nil {
			if !yield(input{name: f.Path, number: number, read: counted.n, err: err}) {
				return
			}
			continue
		}
		in := input{name: fmt.Sprintf("%s, report %d", f.Path, number), number: number, read: counted.n}
		held, err := intake.CopyWritten(write, limits.Folder, limits.Input)
		if in.err = err; err == nil {
			in.content, in.size = held, held.Size()
		}
		more := yield(in)
		if held != nil {
			held.Close()
		}
		if !more {
			return
		}
	}
	yield(input{name: f.Path, read: counted.n, last: true})
}

// counter counts the bytes read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
