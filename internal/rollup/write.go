package rollup

import (
	"encoding/binary"

	"github.com/dmarcd/dmarcd"
)

// The size of a block: a writer is full that has as many records or octets.
const (
	maxRecords = 1 << 16
	maxBytes   = 2 << 20
)

// Writer makes blocks. The zero value is an empty block. It is not safe for concurrent
// use.
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

// section is a list in which nothing is written twice.
type section struct {
	offsets map[string]uint32
	b       []byte
}

// add returns the offset of an entry. A new one is written, with its length unless the entry
// contains it.
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

// Address returns the place of an address in the block, by its text.
func (w *Writer) Address(text string) uint32 {
	w.scratch = addressForm(text, w.scratch)
	return w.addresses.add(w.scratch, true)
}

// Identity returns the place of an identity in the block.
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

// Begin begins a share; its Records are not written. The records that are added belong to
// it, in this block and in those that follow, until the next share begins.
func (w *Writer) Begin(share Share) {
	w.end()
	w.share, w.next = share, 0
}

// Add adds a record to the share. Its number must be greater than that of the one before.
// The places are those that Address and Identity returned for this block.
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

// end writes the share that was begun, if it has records.
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

// Records returns how many records the block has.
func (w *Writer) Records() int { return w.records }

// Full reports whether the block is to be taken before anything is added.
func (w *Writer) Full() bool {
	return w.records >= maxRecords ||
		len(w.texts.b)+len(w.addresses.b)+len(w.identities.b)+len(w.shares)+len(w.own) >= maxBytes
}

// Take returns the block, which the caller owns, and begins the next one. All places are
// void after it.
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

// Counts reports what the messages of a record of the share count.
func (s *Share) Counts(r *Record) dmarcd.Counts {
	c := r.Outcome.Counts(r.Count)
	if s.Unverified {
		c.Unverified = c.Total()
	}
	return c
}
