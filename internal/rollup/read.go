package rollup

import (
	"math"
	"slices"

	"github.com/dmarcd/dmarcd"
)

// Read reads a part into the block, in place of what it has, and uses its memory again.
// Texts of a block share one allocation: clone one that must live longer. A block
// that is not one is ErrDamaged.
func (b *Block) Read(p Part) error {
	r := reader{s: string(p.Block)}
	if len(r.s) == 0 || len(r.s) > math.MaxUint32 || r.s[0] != version {
		return ErrDamaged
	}
	r.next = 1
	b.texts = r.texts(b.texts[:0])
	b.Addresses = Texts{r.s, r.places(b.Addresses.places[:0])}
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

// readShare reads a share, if it is of one of the domains; nil is all.
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

// reader reads from a block. Once something is wrong it is damaged, and what it returns
// has no meaning.
type reader struct {
	s       string
	next    int
	damaged bool
}

// records reads records. It is where the time goes.
func (r *reader) records(into []Record, addresses, identities uint64) {
	s, next := r.s, r.next
	n := uint64(0)
	for i := range into {
		var field [5]uint64 // step, address, identity, outcome, count
		for f := range field {
			if next < len(s) && s[next] < 0x80 { // as most are
				field[f] = uint64(s[next])
				next++
			} else if field[f], next = number(s, next); next < 0 {
				r.fail()
				return
			}
		}
		step, address, identity, outcome, count := field[0], field[1], field[2], field[3], field[4]
		n += step
		if address >= addresses || identity >= identities || outcome >= uint64(dmarcd.Outcomes) || n > math.MaxUint32 || count > math.MaxInt64 {
			r.fail()
			return
		}
		into[i] = Record{
			N: uint32(n), Address: uint32(address), Identity: uint32(identity), //nolint:gosec // they are less than numbers of entries
			Outcome: dmarcd.Outcome(outcome), Count: int64(count),
		}
		n++
	}
	r.next = next
}

func (r *reader) fail() { r.damaged, r.next = true, len(r.s) }

func (r *reader) number() uint64 {
	n, next := number(r.s, r.next)
	if r.next = next; next < 0 {
		r.fail()
	}
	return n
}

// number reads a number and returns where the next one is, or a negative place if there
// is none.
func number(s string, at int) (n uint64, next int) {
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

// length reads how many things follow, each of which takes an octet at least.
func (r *reader) length() int {
	n := r.number()
	if n > uint64(len(r.s)-r.next) { //nolint:gosec // not negative
		r.fail()
		return 0
	}
	return int(n) //nolint:gosec // not more than there are octets
}

func (r *reader) texts(into []string) []string {
	n := r.length()
	into = slices.Grow(into, n)
	for range n {
		size := r.length()
		into = append(into, r.s[r.next:r.next+size])
		r.next += size
	}
	return into
}

// places reads texts, and appends where they are.
func (r *reader) places(into []uint32) []uint32 {
	n := r.length()
	into = slices.Grow(into, n)
	for range n {
		into = append(into, uint32(r.next)) //nolint:gosec // less than the length of a block
		size := r.length()
		r.next += size
	}
	return into
}

// at reads a place in a list and returns what stands there.
func at(r *reader, list []string) string {
	n := r.number()
	if n >= uint64(len(list)) {
		r.fail()
		return ""
	}
	return list[n]
}
