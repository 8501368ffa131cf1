package rollup

import (
	"encoding/binary"

	"github.com/dmarcd/dmarcd"
)

// A writer is full when its block has this many records or octets.
const (
	maxRecords = 1 << 16
	maxBytes   = 2 << 20
)

// Writer builds blocks. The zero value is ready to use. It is not safe for concurrent use.
type Writer struct {
	texts, addresses, identities section
	shares                       []byte
	shareCount                   int
	records                      int

	share   Share  // the one that is being written, without records
	next    uint32 // the least number of the next record of it
	own     []byte // its records
	ownLen  int
	scratch []byte
}

// section is a list of distinct entries.
type section struct {
	offsets map[string]uint32
	b       []byte
}

// add returns the index of an entry. It appends a new entry, with its length if sized.
func (s *section) add(entry []byte, sized bool) uint32 {
	at, known := s.offsets[string(entry)]
	if !known {
		if s.offsets == nil {
			s.offsets = make(map[string]uint32)
		}
		at = uint32(len(s.offsets)) //nolint:gosec // there are fewer than octets in a block
		s.offsets[string(entry)] = at
		if sized {
			s.b = binary.AppendUvarint(s.b, uint64(len(entry)))
		}
		s.b = append(s.b, entry...)
	}
	return at
}

func (s *section) reset() {
	clear(s.offsets)
	s.b = s.b[:0]
}

// Address returns the index of an address in the block.
func (w *Writer) Address(text string) uint32 {
	w.scratch = addressForm(text, w.scratch)
	return w.addresses.add(w.scratch, true)
}

// Identity returns the index of an identity in the block.
func (w *Writer) Identity(i Identity) uint32 {
	b := make([]byte, 0, 32)
	text := func(s string) { b = binary.AppendUvarint(b, uint64(w.texts.add([]byte(s), true))) }
	text(i.Envelope)
	b = binary.AppendUvarint(b, uint64(len(i.Signatures)))
	for _, s := range i.Signatures {
		text(s.Domain)
		text(s.Selector)
		b = append(b, byte(s.Result))
	}
	b = binary.AppendUvarint(b, uint64(len(i.SPF)))
	for _, c := range i.SPF {
		text(c.Domain)
		b = append(b, byte(c.Result), bit(c.Helo))
	}
	b = binary.AppendUvarint(b, uint64(i.Reasons))
	return w.identities.add(b, false)
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// Begin starts a share; it ignores Records. Added records belong to it, in this block and the
// following ones, until the next Begin.
func (w *Writer) Begin(share Share) {
	w.end()
	w.share, w.next = share, 0
}

// Add adds a record to the share. Its number must be greater than that of the previous one, and
// its indexes must come from Address and Identity of this block.
func (w *Writer) Add(r Record) {
	w.own = binary.AppendUvarint(w.own, uint64(r.N-w.next))
	w.own = binary.AppendUvarint(w.own, uint64(r.Address))
	w.own = binary.AppendUvarint(w.own, uint64(r.Identity))
	w.own = append(w.own, byte(r.Outcome))
	w.own = binary.AppendUvarint(w.own, uint64(r.Count)) //nolint:gosec // not negative
	w.next = r.N + 1
	w.ownLen++
	w.records++
}

// end writes the current share, if it has records.
func (w *Writer) end() {
	if w.ownLen == 0 {
		return
	}
	b := w.shares
	b = binary.AppendUvarint(b, uint64(w.share.Report)) //nolint:gosec // not negative
	b = binary.AppendUvarint(b, uint64(w.share.N))      //nolint:gosec // not negative
	b = binary.AppendUvarint(b, uint64(w.share.Domain)) //nolint:gosec // not negative
	b = binary.AppendVarint(b, int64(w.share.Day))
	b = append(b, bit(w.share.Unverified))
	b = binary.AppendUvarint(b, uint64(w.texts.add([]byte(w.share.Reporter), true)))
	b = binary.AppendUvarint(b, uint64(w.texts.add([]byte(w.share.From), true)))
	b = binary.AppendUvarint(b, uint64(w.ownLen)) //nolint:gosec // not negative
	b = binary.AppendUvarint(b, uint64(len(w.own)))
	b = append(b, w.own...)
	w.shares = b
	w.own, w.ownLen, w.next = w.own[:0], 0, 0
	w.shareCount++
}

// Records returns the number of records in the block.
func (w *Writer) Records() int { return w.records }

// Full reports whether Take must be called before anything is added.
func (w *Writer) Full() bool {
	return w.records >= maxRecords ||
		len(w.texts.b)+len(w.addresses.b)+len(w.identities.b)+len(w.shares)+len(w.own) >= maxBytes
}

// Take returns the block, which the caller owns, and starts the next one. Indexes become
// invalid.
func (w *Writer) Take() []byte {
	w.end()
	block := make([]byte, 0, len(w.texts.b)+len(w.addresses.b)+len(w.identities.b)+len(w.shares)+32)
	block = append(block, version)
	for _, s := range []*section{&w.texts, &w.addresses, &w.identities} {
		block = binary.AppendUvarint(block, uint64(len(s.offsets)))
		block = append(block, s.b...)
		s.reset()
	}
	block = binary.AppendUvarint(block, uint64(w.shareCount)) //nolint:gosec // not negative
	block = append(block, w.shares...)
	w.shares, w.shareCount, w.records = w.shares[:0], 0, 0
	return block
}

// Counts returns the counters of the messages of a record.
func (s *Share) Counts(r *Record) dmarcd.Counts {
	c := r.Outcome.Counts(r.Count)
	if s.Unverified {
		c.Unverified = c.Total()
	}
	return c
}
