package unpack

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"encoding/binary"
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

// localHeader is the size of the fixed part of a local header (APPNOTE 4.3.7).
const localHeader = 30

// member is a local header.
type member struct {
	name      string
	method    uint16
	encrypted bool
	data      int64 // offset of the content
	packed    int64 // its length; 0 is unknown, unless it is stored
}

// zipDescriptor starts the data descriptor after a member whose header has no length
// (APPNOTE 4.3.9).
var zipDescriptor = []byte("PK\x07\x08")

// zipWithoutDirectory walks through an archive with a missing or broken directory, from
// one local header to the next. The last member may be incomplete.
func (w *walker) zipWithoutDirectory(archive *io.SectionReader, at location, cause error) error {
	if at.damage == nil {
		at.damage = damaged(errCutOff)
	}
	before := w.parts
	block := make([]byte, 32<<10)
	for offset := int64(0); ; {
		m, found, err := nextMember(archive, offset, block)
		if err != nil {
			return w.budget.fail(err)
		}
		if !found {
			break
		}
		if err := w.budget.member(); err != nil {
			return err
		}
		if m.method == zip.Store && m.packed == 0 {
			// Deflate data has an end mark, stored data does not.
			if m.packed, err = storedLength(archive, m.data, block); err != nil {
				return w.budget.fail(err)
			}
		}
		end, err := w.looseMember(archive, m, at.in(m.name))
		if err != nil {
			return err
		}
		offset = max(end, m.data)
	}
	if w.parts == before {
		return w.reject(at, damaged(cause))
	}
	return nil
}

// looseMember walks through one member and returns its end.
func (w *walker) looseMember(archive *io.SectionReader, m member, at location) (end int64, err error) {
	length := archive.Size() - m.data
	if m.packed > 0 || m.method == zip.Store {
		length = min(length, m.packed)
	}
	section := io.NewSectionReader(archive, m.data, length)
	switch {
	case isClutter(m.name):
		return m.data + m.packed, nil
	case m.encrypted:
		return m.data + m.packed, w.reject(at, ErrEncrypted)
	case m.method == zip.Store:
		content := &meter{r: section, from: &counter{n: length}, budget: w.budget}
		return m.data + m.packed, w.content(content, at)
	case m.method != zip.Deflate:
		return m.data + m.packed, w.reject(at, unread(m.method))
	}
	// An io.ByteReader is never read beyond the compressed data.
	from := &counter{r: section}
	packed := bufio.NewReader(from)
	inflater := w.inflate(packed)
	defer func() { _ = inflater.Close() }() // read-only
	content := &meter{r: inflater, from: from, budget: w.budget}
	if err := w.content(content, at); err != nil {
		return 0, err
	}
	if m.packed > 0 {
		return m.data + m.packed, nil
	}
	_, _ = io.Copy(io.Discard, content) // the reader has already seen the damage or limit
	return m.data + from.n - int64(packed.Buffered()), w.budget.alive()
}

// nextMember finds the first local header at or after offset.
func nextMember(archive *io.SectionReader, offset int64, block []byte) (m member, found bool, err error) {
	start, err := find(archive, offset, block, magicZip)
	if err != nil || start < 0 {
		return member{}, false, err
	}
	var h [localHeader]byte
	if n, err := archive.ReadAt(h[:], start); n < len(h) {
		if errors.Is(err, io.EOF) {
			return member{}, false, nil
		}
		return member{}, false, err
	}
	nameLength := int64(binary.LittleEndian.Uint16(h[26:]))
	extraLength := int64(binary.LittleEndian.Uint16(h[28:]))
	name := make([]byte, nameLength)
	n, err := archive.ReadAt(name, start+localHeader)
	if err != nil && !errors.Is(err, io.EOF) {
		return member{}, false, err
	}
	m = member{
		name:      string(name[:n]),
		method:    binary.LittleEndian.Uint16(h[8:]),
		encrypted: h[6]&flagEncrypted != 0,
		data:      min(start+localHeader+nameLength+extraLength, archive.Size()),
	}
	// Bit 3 means that the length follows the data (APPNOTE 4.4.4).
	if packed := binary.LittleEndian.Uint32(h[18:]); h[6]&0x8 == 0 && packed != 0xffffffff {
		m.packed = int64(packed)
	}
	return m, true, nil
}

// storedLength returns the length of stored data at offset: it ends at the next
// signature.
func storedLength(archive *io.SectionReader, offset int64, block []byte) (int64, error) {
	end, err := find(archive, offset, block, zipDescriptor, magicZip)
	if err != nil {
		return 0, err
	}
	if end < 0 {
		end = archive.Size()
	}
	return end - offset, nil
}

// find returns the offset of the first mark at or after offset, -1 if there is none. All
// marks have the same length. It reads block by block and stops at the block with a mark,
// because an archive may have a thousand members.
func find(archive *io.SectionReader, offset int64, block []byte, marks ...[]byte) (int64, error) {
	for offset < archive.Size() {
		n, err := archive.ReadAt(block, offset)
		first := -1
		for _, mark := range marks {
			if i := bytes.Index(block[:n], mark); i >= 0 && (first < 0 || i < first) {
				first = i
			}
		}
		if first >= 0 {
			return offset + int64(first), nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if n < len(block) {
			break
		}
		// A mark may cross the end of the block.
		offset += int64(n - len(marks[0]) + 1)
	}
	return -1, nil
}
