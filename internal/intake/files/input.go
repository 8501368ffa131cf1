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

// sniffBytes is how much of a file is looked at to tell a mailbox: its first line.
const sniffBytes = 1024

// input is one thing to be accepted: a file, or a mail of a mailbox.
type input struct {
	name    string
	content io.ReaderAt
	size    int64
	// number is that of the mail in its mailbox, from 1. It is 0 for a whole file and
	// for what is said of one.
	number int
	// read is how much of the file has been read behind it, about.
	read int64
	// last tells that nothing of the file follows.
	last bool
	// err says why there is no content: a dmarcd.ErrLimit, the error of the file, or a
	// dmarcd.ErrTemporary where a temporary file failed.
	err error
}

// inputs yields what is in a file. Of a mailbox, each mail is an input of its own, but
// for as many as are to be passed over. An input is valid until the next one is asked
// for. The last one is marked, and may have nothing but the mark.
func inputs(f File, limits unpack.Limits, passOver int) iter.Seq[input] {
	return func(yield func(input) bool) {
		file, err := os.Open(f.Path)
		if err != nil {
			yield(input{name: f.Path, err: err, last: true})
			return
		}
		defer func() { _ = file.Close() }() // read-only
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

// whole returns the input that a file is.
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

// mails yields the mails of a mailbox.
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

// mailInput yields one mail of a mailbox.
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

// counter counts the bytes that are read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
