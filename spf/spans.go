package spf

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// spans is a set of addresses: ranges in order, which neither overlap nor touch. IPv4 is before IPv6.
type spans []span

// span is a range of addresses of one family, with both ends.
type span struct{ first, last netip.Addr }

// everything returns all addresses of both families.
func everything() spans {
	return spanOf(netip.PrefixFrom(netip.IPv4Unspecified(), 0)).union(spanOf(netip.PrefixFrom(netip.IPv6Unspecified(), 0)))
}

// spanOf returns the addresses of a network, whose host bits are ignored.
func spanOf(p netip.Prefix) spans {
	p = p.Masked()
	last := p.Addr().AsSlice()
	for bit := p.Bits(); bit < 8*len(last); bit++ {
		last[bit/8] |= 0x80 >> (bit % 8)
	}
	end, _ := netip.AddrFromSlice(last)
	return spans{{p.Addr(), end}}
}

// union returns the addresses of both sets.
func (s spans) union(other spans) spans {
	all := slices.Concat(s, other)
	slices.SortFunc(all, func(a, b span) int { return a.first.Compare(b.first) })
	var merged spans
	for _, next := range all {
		if n := len(merged) - 1; n >= 0 && merged[n].reaches(next.first) {
			if merged[n].last.Less(next.last) {
				merged[n].last = next.last
			}
			continue
		}
		merged = append(merged, next)
	}
	return merged
}

// reaches reports whether an address that is not before the range is in it or follows it.
func (s span) reaches(a netip.Addr) bool {
	return s.last.BitLen() == a.BitLen() && (!s.last.Less(a) || s.last.Next() == a)
}

// without returns the addresses of s that are not in other.
func (s spans) without(other spans) spans {
	var left spans
	for _, rest := range s {
		i, _ := slices.BinarySearchFunc(other, rest.first, func(o span, first netip.Addr) int { return o.last.Compare(first) })
		whole := true
		for j := i; j < len(other) && !rest.last.Less(other[j].first); j++ {
			cut := other[j]
			if rest.first.Less(cut.first) {
				left = append(left, span{rest.first, cut.first.Prev()})
			}
			if !cut.last.Less(rest.last) {
				whole = false
				break
			}
			rest.first = cut.last.Next()
		}
		if whole {
			left = append(left, rest)
		}
	}
	return left
}

// prefixes returns the fewest networks that have the same addresses.
func (s spans) prefixes() []netip.Prefix {
	var networks []netip.Prefix
	for _, rest := range s {
		for {
			// The largest network that begins here and does not end after the range.
			p := netip.PrefixFrom(rest.first, rest.first.BitLen())
			for p.Bits() > 0 {
				wider := netip.PrefixFrom(rest.first, p.Bits()-1)
				if wider.Masked().Addr() != rest.first || rest.last.Less(spanOf(wider)[0].last) {
					break
				}
				p = wider
			}
			networks = append(networks, p)
			end := spanOf(p)[0].last
			if end == rest.last {
				break
			}
			rest.first = end.Next()
		}
	}
	return networks
}

// Sizes are the numbers of addresses that records pass. IPv6 counts networks of 64 bits, because a host
// may use all addresses of one.
type Sizes struct{ IPv4, IPv6 float64 }

func (s spans) sizes() Sizes {
	var n Sizes
	counted := ^uint64(0) // the last network of IPv6; none begins at the last one, which is multicast
	for _, r := range s { // subtracted as integers: float64 has 53 bits
		first, last := r.first.As16(), r.last.As16()
		if r.first.Is4() {
			n.IPv4 += float64(binary.BigEndian.Uint64(last[8:])-binary.BigEndian.Uint64(first[8:])) + 1
			continue
		}
		from, to := binary.BigEndian.Uint64(first[:8]), binary.BigEndian.Uint64(last[:8])
		if n.IPv6 += float64(to - from); from != counted {
			n.IPv6++
		}
		counted = to
	}
	return n
}
