// Package files imports reports from files: those that an operator names, including folders,
// Maildirs and mboxes, and those that appear in a drop folder. Package intake reads the files,
// and its DeliveryStore stores the reports.
//
// Files are never changed or deleted. Only those in the drop folder are moved.
package files

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/intake/unpack"
)

// File is a file that was found. It may have changed since.
type File struct {
	// Path is the path as given or found.
	Path     string
	Size     int64
	Modified time.Time
}

// same reports whether g has the same path, size and modification time.
func (f File) same(g File) bool {
	return f.Path == g.Path && f.Size == g.Size && f.Modified.Equal(g.Modified)
}

// Listing is the result of List.
type Listing struct {
	// Files are in the order of the given paths; within a folder they are sorted by name.
	Files []File
	// Bytes is the total size.
	Bytes int64
	// Unread holds an error for each path that could not be read.
	Unread []error
}

// List finds the files that paths stand for: a file for itself, a folder for all files below
// it, without hidden files and symbolic links. Of a Maildir and its subfolders it returns the
// mails in cur and new. A file is listed once.
func List(paths ...string) Listing {
	l := lister{seen: make(map[string]bool)}
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			l.Unread = append(l.Unread, err)
		case info.IsDir():
			l.folder(path)
		case info.Mode().IsRegular():
			l.file(path, info)
		default:
			l.Unread = append(l.Unread, fmt.Errorf("%s is neither a file nor a folder", path))
		}
	}
	return l.Listing
}

type lister struct {
	Listing

	seen map[string]bool // by absolute path
}

func (l *lister) file(path string, info fs.FileInfo) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		l.Unread = append(l.Unread, err)
		return
	}
	if l.seen[absolute] {
		return
	}
	l.seen[absolute] = true
	l.Files = append(l.Files, File{Path: path, Size: info.Size(), Modified: info.ModTime()})
	l.Bytes += info.Size()
}

func (l *lister) folder(path string) {
	entries, err := os.ReadDir(path)
	if err != nil {
		l.Unread = append(l.Unread, err)
		// Use the entries read before the error.
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	maildir := isMaildir(entries)
	for _, entry := range entries {
		inner := filepath.Join(path, entry.Name())
		switch {
		case maildir && !ofMaildir(inner, entry):
		case !maildir && strings.HasPrefix(entry.Name(), "."):
		case entry.IsDir():
			l.folder(inner)
		case entry.Type().IsRegular():
			info, err := entry.Info()
			if err != nil {
				l.Unread = append(l.Unread, err)
				continue
			}
			l.file(inner, info)
		}
	}
}

// isMaildir reports whether entries include the folders cur, new and tmp.
func isMaildir(entries []fs.DirEntry) bool {
	found := 0
	for _, entry := range entries {
		if name := entry.Name(); entry.IsDir() && (name == "cur" || name == "new" || name == "tmp") {
			found++
		}
	}
	return found == 3
}

// ofMaildir reports whether an entry of a Maildir contains mail. Messages in tmp are
// incomplete, and other files belong to the mail server. Subfolders start with a dot
// (Maildir++) and are Maildirs.
func ofMaildir(path string, entry fs.DirEntry) bool {
	switch name := entry.Name(); {
	case !entry.IsDir() || name == "tmp":
		return false
	case strings.HasPrefix(name, "."):
		inner, err := os.ReadDir(path)
		return err != nil || isMaildir(inner) // reading it reports the error
	default:
		return true
	}
}

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
