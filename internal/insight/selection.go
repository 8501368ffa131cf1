package insight

import (
	"slices"

	"github.com/dmarcd/dmarcd"
)

// selection is some of the records.
type selection struct {
	mail    *Mail
	parts   []part
	records int
	// bases and groups are the sums that were needed so far.
	bases  *[byRecord][]sum
	groups map[Group][]sum
	group  Group // of the source whose records they are, with its key
	key    string
}

// part is some records of the share at a place.
type part struct {
	share   int
	records []dmarcd.Sent
}

func (s *selection) add(share int, records []dmarcd.Sent) {
	if len(records) > 0 {
		s.parts = append(s.parts, part{share, records})
		s.records += len(records)
	}
}

// of returns the records of the source that the query names, or all where it names
// none.
func (m *Mail) of(q Query) *selection {
	if q.Key == "" {
		return m.whole
	}
	if m.chosen != nil && m.chosen.group == q.Group && m.chosen.key == q.Key {
		return m.chosen
	}
	m.chosen = &selection{mail: m, group: q.Group, key: q.Key}
	column := m.column(q.Group)
	wanted := slices.Index(column.keys, q.Key)
	if wanted < 0 {
		return m.chosen
	}
	chosen := make([][]dmarcd.Sent, len(m.whole.parts))
	split(len(chosen), m.whole.records, func(from, to int) {
		for i := from; i < to; i++ {
			p := m.whole.parts[i]
			chosen[i] = choose(p.records, func(r *dmarcd.Sent) bool { return column.of(p.share, r) == uint32(wanted) }) //nolint:gosec // not negative
		}
	})
	for i, records := range chosen {
		m.chosen.add(m.whole.parts[i].share, records)
	}
	return m.chosen
}

// choose returns the records that are wanted. All are as they are, without a copy.
func choose(records []dmarcd.Sent, wanted func(*dmarcd.Sent) bool) []dmarcd.Sent {
	n := 0
	for i := range records {
		if wanted(&records[i]) {
			n++
		}
	}
	if n == len(records) {
		return records
	}
	some := make([]dmarcd.Sent, 0, n)
	for i := range records {
		if wanted(&records[i]) {
			some = append(some, records[i])
		}
	}
	return some
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
	sums := gather(len(s.parts), s.records, shares+len(sent.Shares), func(sums []sum, from, to int) {
		for _, p := range s.parts[from:to] {
			day, share := sent.Shares[p.share].Day, &sums[shares+p.share]
			for i := range p.records {
				r := &p.records[i]
				sums[r.Address].add(r, day)
				sums[identities+int(r.Identities)].add(r, day)
				share.add(r, day)
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
		sums = gather(len(s.parts), s.records, len(column.keys), func(sums []sum, from, to int) {
			for _, p := range s.parts[from:to] {
				day := s.mail.sent.Shares[p.share].Day
				for i := range p.records {
					sums[column.of(p.share, &p.records[i])].add(&p.records[i], day)
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
