package insight

import (
	"slices"

	"github.com/dmarcd/dmarcd"
)

// selection is some of the records: all, or those of one source.
type selection struct {
	mail *Mail
	// column and place are the source; of is nil in the column where it is all.
	column column
	key    string
	place  uint32
	// bases and groups are the sums that were needed so far.
	bases  *[byRecord][]sum
	groups map[Group][]sum
}

// has tells whether a record of the share at a place is among them.
func (s *selection) has(share int, r *dmarcd.Sent) bool {
	return s.column.of == nil || s.column.of(share, r) == s.place
}

// of returns the records of the source that the query names, or all where it names
// none. There may be none.
func (m *Mail) of(q Query) *selection {
	if q.Key == "" {
		return m.whole
	}
	if m.chosen == nil || m.chosen.column.group != q.Group || m.chosen.key != q.Key {
		column := m.column(q.Group)
		place := slices.Index(column.keys, q.Key)
		if place < 0 {
			place = len(column.keys) // of none
		}
		m.chosen = &selection{mail: m, column: column, key: q.Key, place: uint32(place)} //nolint:gosec // not negative
	}
	return m.chosen
}

// basis is what decides to which source of a group a record belongs. Several groups
// have the same: the records are added up by it once, and its sums by group after that.
type basis int

const (
	byAddress basis = iota
	byIdentities
	byShare
	byRecord // it takes more than one of the others
)

// sums adds up the records at the places of the addresses, identities or shares. One
// look at them is for all three.
func (s *selection) sums(by basis) []sum {
	if s.bases != nil {
		return s.bases[by]
	}
	sent := s.mail.sent
	identities := len(sent.Addresses)
	shares := identities + len(sent.Identities)
	sums := gather(s.mail, shares+len(sent.Shares), func(sums []sum, share int, records []dmarcd.Sent) {
		day, ofShare := sent.Shares[share].Day, &sums[shares+share]
		for i := range records {
			if r := &records[i]; s.has(share, r) {
				sums[r.Address].add(r, day)
				sums[identities+int(r.Identities)].add(r, day)
				ofShare.add(r, day)
			}
		}
	}, (*sum).merge)
	s.bases = &[byRecord][]sum{byAddress: sums[:identities], byIdentities: sums[identities:shares], byShare: sums[shares:]}
	return s.bases[by]
}

// by adds up the records at the places of their sources in a column.
func (s *selection) by(column column) []sum {
	if known := s.groups[column.group]; known != nil {
		return known
	}
	var sums []sum
	if column.basis == byRecord {
		sums = gather(s.mail, len(column.keys), func(sums []sum, share int, records []dmarcd.Sent) {
			day := s.mail.sent.Shares[share].Day
			for i := range records {
				if r := &records[i]; s.has(share, r) {
					sums[column.of(share, r)].add(r, day)
				}
			}
		}, (*sum).merge)
	} else {
		sums = make([]sum, len(column.keys))
		for i, of := range s.sums(column.basis) {
			sums[column.places[i]].merge(&of)
		}
	}
	if s.groups == nil {
		s.groups = make(map[Group][]sum)
	}
	s.groups[column.group] = sums
	return sums
}
