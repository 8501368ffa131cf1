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
	if len(r.s) == 0 || r.s[0] != version {
		return ErrDamaged
	}
	r.next = 1
	b.texts = r.texts(b.texts[:0])
	b.Addresses = r.texts(b.Addresses[:0])
	b.readIdentities(&r)
	b.Shares, b.records = b.Shares[:0], b.records[:0]
	for range r.length() {
		if r.damaged {
			break
		}
		b.readShare(&r, p.Domain)
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

// readShare reads a share, if it is of the domain.
func (b *Block) readShare(r *reader, domain dmarcd.DomainID) {
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
	if domain != 0 && share.Domain != domain {
		r.next = end
		return
	}
	from := len(b.records)
	b.records = slices.Grow(b.records, records)[:from+records]
	share.Records = b.records[from : from+records : from+records]
	r.records(share.Records, uint64(len(b.Addresses)), uint64(len(b.Identities)))
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
	n := uint64(0)
	for i := range into {
		n += r.number()
		address, identity, outcome, count := r.number(), r.number(), r.number(), r.number()
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
}

func (r *reader) fail() { r.damaged, r.next = true, len(r.s) }

func (r *reader) number() uint64 {
	if r.next < len(r.s) && r.s[r.next] < 0x80 { // as most are
		r.next++
		return uint64(r.s[r.next-1])
	}
	var n uint64
	for shift := 0; shift < 64 && r.next < len(r.s); shift += 7 {
		c := r.s[r.next]
		r.next++
		if c < 0x80 {
			return n | uint64(c)<<shift
		}
		n |= uint64(c&0x7f) << shift
	}
	r.fail()
	return 0
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
	return Result(n)
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

// at reads a place in a list and returns what stands there.
func at(r *reader, list []string) string {
	n := r.number()
	if n >= uint64(len(list)) {
		r.fail()
		return ""
	}
	return list[n]
}
