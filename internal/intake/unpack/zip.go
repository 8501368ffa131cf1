package unpack

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zip"
)

// zipEntry is the signature of a directory entry.
var zipEntry = []byte("PK\x01\x02")

// errCutOff means that an archive has no directory.
var errCutOff = errors.New("the archive has no directory, it is truncated")

const flagEncrypted = 0x1

const methodBzip2 = 12

// methods names the unsupported compression methods (APPNOTE 4.4.5).
var methods = map[uint16]string{
	1: "Shrink", 6: "Implode", 9: "Deflate64", 10: "PKWARE DCL Implode", methodBzip2: "bzip2", 14: "LZMA", 19: "LZ77",
	20: "Zstandard", 93: "Zstandard", 95: "XZ", 98: "PPMd", 99: "AES encryption",
}

// unread returns the reason why a method is not supported.
func unread(method uint16) error {
	name, ok := methods[method]
	if !ok {
		name = "method " + strconv.Itoa(int(method))
	}
	return fmt.Errorf("%w: %s", errMethod, name)
}

// zipStream walks through a zip archive in a stream. It spools the archive first, because
// the directory is at the end.
func (w *walker) zipStream(r io.Reader, at location) error {
	s, err := w.spool(r)
	if err != nil {
		if err := w.budget.alive(); err != nil {
			return err
		}
		return w.reject(at, err)
	}
	defer s.release()
	if s.damage != nil {
		at.damage = s.damage
	}
	return w.zip(s.SectionReader, at)
}

// zip walks through a zip archive.
func (w *walker) zip(archive *io.SectionReader, at location) error {
	size := archive.Size()
	if err := w.countEntries(archive, size); err != nil {
		return err
	}
	z, err := zip.NewReader(archive, size)
	if err != nil {
		return w.zipWithoutDirectory(archive, at, err)
	}
	from := &counter{}
	z.RegisterDecompressor(zip.Store, func(r io.Reader) io.ReadCloser {
		*from = counter{r: r}
		return io.NopCloser(from)
	})
	z.RegisterDecompressor(zip.Deflate, func(r io.Reader) io.ReadCloser {
		*from = counter{r: r}
		return w.inflate(from)
	})
	z.RegisterDecompressor(methodBzip2, func(r io.Reader) io.ReadCloser {
		*from = counter{r: r}
		return io.NopCloser(bzip2.NewReader(from))
	})
	before := w.parts
	for _, f := range z.File {
		if err := w.budget.member(); err != nil {
			return err
		}
		if isClutter(f.Name) {
			continue
		}
		if err := w.zipMember(f, from, at.in(f.Name)); err != nil {
			return err
		}
	}
	if w.parts == before {
		return w.reject(at, ErrNoReport)
	}
	return nil
}

// zipMember walks through one file of an archive.
func (w *walker) zipMember(f *zip.File, from *counter, at location) error {
	if f.Flags&flagEncrypted != 0 {
		return w.reject(at, ErrEncrypted)
	}
	if f.Method != zip.Store && f.Method != zip.Deflate && f.Method != methodBzip2 {
		return w.reject(at, unread(f.Method))
	}
	content, err := f.Open()
	if err != nil {
		if err := w.budget.alive(); err != nil {
			return err
		}
		return w.reject(at, damaged(err))
	}
	defer func() { _ = content.Close() }() // read-only
	return w.content(&meter{r: content, from: from, budget: w.budget}, at)
}

// countEntries rejects an archive with too many members before its directory is read,
// which needs memory for each of them. It counts the entries, because the declared number
// may be wrong. Entries of archives stored inside count too: their members would count
// later anyway.
func (w *walker) countEntries(archive io.ReaderAt, size int64) error {
	left := w.budget.limits.Members - w.budget.members
	r := bufio.NewReaderSize(io.NewSectionReader(archive, 0, size), int(min(size+1, 64<<10)))
	for {
		if err := w.budget.alive(); err != nil {
			return err
		}
		window, err := r.Peek(r.Size())
		left -= bytes.Count(window, zipEntry)
		if left < 0 {
			return w.budget.exceeded(LimitMembers, int64(w.budget.limits.Members))
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				return w.budget.fail(fmt.Errorf("read archive: %w", err))
			}
			return nil
		}
		// An entry may cross the end of the window.
		if _, err := r.Discard(len(window) - len(zipEntry) + 1); err != nil {
			return w.budget.fail(fmt.Errorf("read archive: %w", err))
		}
	}
}

// isClutter reports whether archivers add a file by themselves: folders, resource forks
// of macOS, and settings of file managers.
func isClutter(name string) bool {
	name = strings.ReplaceAll(name, `\`, "/")
	base := path.Base(name)
	return strings.HasSuffix(name, "/") || strings.HasPrefix(base, "._") ||
		strings.HasPrefix(name, "__MACOSX/") || strings.Contains(name, "/__MACOSX/") ||
		base == ".DS_Store" || base == "Thumbs.db" || base == "desktop.ini"
}
