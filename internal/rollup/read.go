package rollup

import (
	"math"
	"slices"

	"github.com/dmarcd/dmarcd"
)

// Read replaces the content of the block by a part, and reuses its memory. The texts of a block
// share one allocation: clone those that live longer. It returns ErrDamaged if the part is not
// a block.
func (b *Block) Read(p Part) error {
	r := reader{s: p.Block}
	if len(r.s) == 0 || len(r.s) > math.MaxUint32 || r.s[0] != version {
		return ErrDamaged
	}
	r.next = 1
	b.offsets = r.offsets(b.offsets[:0])
	b.Addresses.offsets = r.offsets(b.Addresses.offsets[:0])
	if r.damaged {
		return ErrDamaged
	}
	b.Addresses.s = string(r.s[:r.next]) // all texts are before the records
	b.texts = b.texts[:0]
	texts := Texts{b.Addresses.s, b.offsets}
	for i := range b.offsets {
		b.texts = append(b.texts, texts.At(uint32(i)))
	}
	b.readIdentities(&r)
	b.Shares, b.records = b.Shares[:0], b.records[:0]
	for range r.length() {
		if r.damaged {
			break
		}
		b.readShare(&r, p.Domains)
	}
	if r.damaged || r.next < len(r.s) {
		return ErrDamaged
	}
	return nil
}

func (b *Block) readIdentities(r *reader) {
	n := r.length()
	b.Identities, b.signatures, b.spf = slices.Grow(b.Identities[:0], n), b.signatures[:0], b.spf[:0]
	for range n {
		if r.damaged {
			return
		}
		i := Identity{Envelope: at(r, b.texts)}
		from := len(b.signatures)
		for range r.length() {
			b.signatures = append(b.signatures, Signature{Domain: at(r, b.texts), Selector: at(r, b.texts), Result: r.result()})
		}
		i.Signatures = b.signatures[from:len(b.signatures):len(b.signatures)]
		from = len(b.spf)
		for range r.length() {
			b.spf = append(b.spf, SPFCheck{Domain: at(r, b.texts), Result: r.result(), Helo: r.bit()})
		}
		i.SPF = b.spf[from:len(b.spf):len(b.spf)]
		i.Reasons = r.reasons()
		b.Identities = append(b.Identities, i)
	}
}

// readShare reads a share if its domain is in domains; nil accepts all.
func (b *Block) readShare(r *reader, domains map[dmarcd.DomainID]bool) {
	share := Share{
		Report: dmarcd.ReportID(r.number()), N: int(r.number()), Domain: dmarcd.DomainID(r.number()), //nolint:gosec // as they were written
		Day: r.day(), Unverified: r.bit(), Reporter: at(r, b.texts), From: at(r, b.texts),
	}
	records, size := r.length(), r.length()
	if r.damaged || records > size {
		r.fail()
		return
	}
	end := r.next + size
	if domains != nil && !domains[share.Domain] {
		r.next = end
		return
	}
	from := len(b.records)
	b.records = slices.Grow(b.records, records)[:from+records]
	share.Records = b.records[from : from+records : from+records]
	r.records(share.Records, uint64(b.Addresses.Len()), uint64(len(b.Identities))) //nolint:gosec // not negative
	if r.next != end {
		r.fail()
	}
	b.Shares = append(b.Shares, share)
}

// reader decodes a block. After an error it is damaged, and its results have no meaning.
type reader struct {
	s       []byte
	next    int
	damaged bool
}

// records reads records. Most of the time is spent here.
func (r *reader) records(into []Record, addresses, identities uint64) {
	s, next := r.s, r.next
	n := uint64(0)
	for i := range into {
		var step, address, identity, outcome, count uint64
		end := -1
		if len(s)-next >= 5*3 {
			step, end = shortNumber(s, next)
			address, end = shortNumber(s, end)
			identity, end = shortNumber(s, end)
			outcome, end = shortNumber(s, end)
			count, end = shortNumber(s, end)
		}
		if end < 0 || max(step, address, identity, outcome, count) > maxShort {
			var field [5]uint64
			if field, end = numbers(s, next); end < 0 {
				r.fail()
				return
			}
			step, address, identity, outcome, count = field[0], field[1], field[2], field[3], field[4]
		}
		next = end
		n += step
		if address >= addresses || identity >= identities || outcome >= uint64(dmarcd.Outcomes) || n > math.MaxUint32 || count > math.MaxInt64 {
			r.fail()
			return
		}
		record := &into[i] // field by field: a composite literal is copied, which takes twice as long
		record.N, record.Address, record.Identity = uint32(n), uint32(address), uint32(identity)
		record.Outcome, record.Count = dmarcd.Outcome(outcome), int64(count)
		n++
	}
	r.next = next
}

// numbers reads the five numbers of a record.
func numbers(s []byte, at int) (field [5]uint64, next int) {
	next = at
	for f := range field {
		if field[f], next = number(s, next); next < 0 {
			break
		}
	}
	return field, next
}

// shortNumber reads a number of up to three octets, which nearly all are. For a longer one it
// returns more than maxShort.
func shortNumber(s []byte, at int) (n uint64, next int) {
	if n = uint64(s[at]); n < 1<<7 {
		return n, at + 1
	}
	if n = n&(1<<7-1) | uint64(s[at+1])<<7; n < 1<<14 {
		return n, at + 2
	}
	return n&(1<<14-1) | uint64(s[at+2])<<14, at + 3
}

const maxShort = 1<<21 - 1

func (r *reader) fail() { r.damaged, r.next = true, len(r.s) }

func (r *reader) number() uint64 {
	n, next := number(r.s, r.next)
	if r.next = next; next < 0 {
		r.fail()
	}
	return n
}

// number reads a number and returns the offset of the next one, negative if there is none.
func number[S string | []byte](s S, at int) (n uint64, next int) {
	if at+1 < len(s) && s[at+1] < 0x80 && s[at] >= 0x80 {
		return uint64(s[at]&0x7f) | uint64(s[at+1])<<7, at + 2
	}
	for shift := 0; shift < 64 && at < len(s); shift += 7 {
		c := s[at]
		at++
		if c < 0x80 {
			return n | uint64(c)<<shift, at
		}
		n |= uint64(c&0x7f) << shift
	}
	return 0, -1
}

func (r *reader) day() dmarcd.Day {
	n := r.number()
	day := int64(n>>1) ^ -int64(n&1) //nolint:gosec // zigzag
	if int64(dmarcd.Day(day)) != day {
		r.fail()
	}
	return dmarcd.Day(day) //nolint:gosec // it fits
}

func (r *reader) bit() bool {
	n := r.number()
	if n > 1 {
		r.fail()
	}
	return n == 1
}

func (r *reader) result() Result {
	n := r.number()
	if n >= uint64(len(resultWords)) {
		r.fail()
		return Unknown
	}
	return Result(n) //nolint:gosec // there are few
}

func (r *reader) reasons() Reasons {
	n := r.number()
	if n > math.MaxUint8 {
		r.fail()
	}
	return Reasons(n) //nolint:gosec // what does not fit is damaged
}

// length reads the number of elements that follow, each of at least one octet.
func (r *reader) length() int {
	n := r.number()
	if n > uint64(len(r.s)-r.next) { //nolint:gosec // not negative
		r.fail()
		return 0
	}
	return int(n) //nolint:gosec // not more than there are octets
}

// offsets skips texts and appends their offsets.
func (r *reader) offsets(into []uint32) []uint32 {
	n := r.length()
	into = slices.Grow(into, n)
	for range n {
		into = append(into, uint32(r.next))                                              //nolint:gosec // less than the length of a block
		if at := r.next; at < len(r.s) && r.s[at] < 0x80 && int(r.s[at]) < len(r.s)-at { // as most are
			r.next = at + 1 + int(r.s[at])
		} else {
			size := r.length()
			r.next += size
		}
	}
	return into
}

// at reads an index into a list and returns the element.
func at(r *reader, list []string) string {
	n := r.number()
	if n >= uint64(len(list)) {
		r.fail()
		return ""
	}
	return list[n]
}
