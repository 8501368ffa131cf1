package unpack

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/klauspost/compress/zip"
)

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
