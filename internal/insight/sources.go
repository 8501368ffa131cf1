package insight

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// Row is a source in a list.
type Row struct {
	// Key names the source among those of its group, Name is for people.
	Key, Name string
	// Detail is what else is known: what a known sender does, the country of a
	// network, the name of an address; "" where nothing is.
	Detail string
	Counts dmarcd.Counts
	// First and Last are the days of the first and the last report of its mail.
	First, Last dmarcd.Day
	// Trend is the messages of each day of the period; nil where that is too long, and
	// in the row of other sources.
	Trend []int64
	// Other tells that the row is the sum of all sources that are not listed one by one:
	// each has at most as many messages as any that is listed.
	Other bool
}

// List is a part of the sources.
type List struct {
	Sources []Row
	// Next is what to ask for as After, "" at the end.
	Next string
	// Counts is the sum over all sources that match, Matching how many of those that
	// are listed one by one.
	Counts   dmarcd.Counts
	Matching int
}

// Sources returns the sources that the query asks for. At most MaxListed are listed one
// by one, those with the most messages, in the order asked for. Where there are more,
// and the query leaves none out, the last row is the sum of the others, so that the rows
// add up to Counts. Every row is exact, with one exception: where the records have more
// than MaxListed different results of authentication, those with few messages count in
// the last row of selectors and envelope domains alone. A cursor that is none is a dmarcd.ErrInvalid.
func (m *Mail) Sources(q Query) (List, error) {
	column := m.column(q.Group)
	sources, other := m.heaviest(column, m.whole)
	sources = slices.DeleteFunc(sources, func(s *source) bool { return !q.matches(s.Row) || q.Key != "" && q.Key != s.Key })
	list := List{Matching: len(sources)}
	for _, s := range sources {
		list.Counts.Add(s.Counts)
		s.rank = placeOf(s.Row, q.Sort)
	}
	if q.Key != "" || q.Search != "" || q.Failing {
		other = nil
	}
	if other != nil {
		list.Counts.Add(other.Counts)
	}
	compare := order(q.Sort)
	if q.After != "" {
		after, err := parseCursor[place](q.After)
		if err != nil {
			return List{}, err
		}
		sources = slices.DeleteFunc(sources, func(s *source) bool { return compare(s.rank, after) <= 0 })
	}
	more := len(sources) > q.Limit
	sources = foremost(sources, q.Limit, func(a, b *source) int { return compare(a.rank, b.rank) })
	if more {
		list.Next = formatCursor(sources[q.Limit-1].rank)
	}
	m.addTrends(column, sources)
	for _, s := range sources {
		list.Sources = append(list.Sources, s.Row)
	}
	if other != nil && list.Next == "" {
		list.Sources = append(list.Sources, *other)
	}
	return list, nil
}

// source is a source while it is being looked at.
type source struct {
	Row
	at   uint32 // its place in the column
	sum  *sum
	rank place
}

// group returns the sources of records in a column, in no order.
func (m *Mail) group(column column, records *selection) []*source {
	return m.sources(column, records.by(column), func(*sum) bool { return true })
}

// heaviest returns the sources of records in a column that are listed one by one, in no
// order, and the row of all others, nil if there are none.
func (m *Mail) heaviest(column column, records *selection) ([]*source, *Row) {
	sums := records.by(column)
	var other sum
	unlisted := 0
	if at := slices.Index(column.keys, otherKey); at >= 0 && sums[at].seen {
		other = sums[at]
		if column.group == GroupAddress {
			unlisted = m.sent.UnlistedAddresses
		}
	}
	least, ties := leastListed(column, sums)
	sources := m.sources(column, sums, func(s *sum) bool {
		switch messages := s.total(); {
		case messages > least:
			return true
		case messages == least && ties > 0:
			ties--
			return true
		}
		other.merge(s)
		unlisted++
		return false
	})
	sources = slices.DeleteFunc(sources, func(s *source) bool { return s.Key == otherKey })
	if !other.seen {
		return sources, nil
	}
	row := Row{Key: otherKey, Counts: other.counts(), First: other.first, Last: other.last, Other: true}
	row.Name, _ = m.name(column.group, 0, otherKey)
	if unlisted > 0 && m.whole == records {
		row.Detail = grouped(int64(unlisted)) + " " + plurals[column.group] + " with fewer messages each"
	}
	return sources, &row
}

// leastListed returns how many messages a source has at least that is listed one by one,
// and how many of those that have just as many are.
func leastListed(column column, sums []sum) (least int64, ties int) {
	var messages []int64
	for at := range sums {
		if sums[at].seen && column.keys[at] != otherKey {
			messages = append(messages, sums[at].total())
		}
	}
	if len(messages) <= MaxListed {
		return -1, 0
	}
	slices.Sort(messages)
	messages = messages[len(messages)-MaxListed:]
	least = messages[0]
	more, _ := slices.BinarySearch(messages, least+1)
	return least, more
}

// sources returns the sources in a column that are wanted, in no order.
func (m *Mail) sources(column column, sums []sum, wanted func(*sum) bool) []*source {
	var places []uint32
	for at := range sums {
		if sums[at].seen && (column.keys[at] == otherKey || wanted(&sums[at])) {
			places = append(places, uint32(at))
		}
	}
	all, sources := make([]source, len(places)), make([]*source, len(places))
	for i, at := range places {
		s := &sums[at]
		all[i] = source{Row: Row{Key: column.keys[at], Counts: s.counts(), First: s.first, Last: s.last}, at: at, sum: s}
		all[i].Name, all[i].Detail = m.name(column.group, at, all[i].Key)
		sources[i] = &all[i]
	}
	return sources
}

// addTrends adds the messages of each day to sources of a column.
func (m *Mail) addTrends(column column, sources []*source) {
	days := m.span()
	if days == 0 || len(sources) == 0 {
		return
	}
	const hidden = -1
	shown := slices.Repeat([]int{hidden}, len(column.keys)) // where the trend of a source begins
	for i, s := range sources {
		shown[s.at] = i * days
	}
	trends := gather(m, len(sources)*days, func(trends []int64, share int, records []dmarcd.Sent) {
		day := int(m.sent.Shares[share].Day - m.first)
		for i := range records {
			if trend := shown[column.of(share, &records[i])]; trend != hidden {
				addMessages(&trends[trend+day], &records[i].Count)
			}
		}
	}, addMessages)
	for i, s := range sources {
		s.Trend = trends[i*days : (i+1)*days : (i+1)*days]
	}
}

// place is where a source stands in an order: by a number, then by name, then by key,
// so that no two stand at the same place.
type place struct {
	Number int64  `json:"n"`
	Name   string `json:"t"`
	Key    string `json:"k"`
}

// defaultSort is the order for whoever does not say.
const defaultSort = "-messages"

// perMillion is a share in whole numbers.
const perMillion = 1_000_000

// placeOf returns the place of a source in the order of a word.
func placeOf(r Row, sort string) place {
	total := r.Counts.Total()
	share := func(part int64) int64 { return int64(float64(part) / float64(max(total, 1)) * perMillion) }
	p := place{Name: strings.ToLower(r.Name), Key: r.Key}
	switch strings.TrimPrefix(sort, "-") {
	case "name":
	case "passing":
		p.Number = share(r.Counts.Compliant)
	case "spf":
		p.Number = share(r.Counts.SPF)
	case "dkim":
		p.Number = share(r.Counts.DKIM)
	case "first":
		p.Number = int64(r.First)
	case "last":
		p.Number = int64(r.Last)
	default:
		p.Number = total
	}
	return p
}

// order returns how two places compare in the order of a word. Of equal numbers the
// names ascend, whatever the direction.
func order(sort string) func(a, b place) int {
	word, descending := strings.CutPrefix(sort, "-")
	if !slices.Contains([]string{"name", "messages", "passing", "spf", "dkim", "first", "last"}, word) {
		word, descending = strings.CutPrefix(defaultSort, "-")
	}
	return func(a, b place) int {
		byNumber := cmp.Compare(a.Number, b.Number)
		byName := cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key))
		switch {
		case descending && word == "name":
			return -byName
		case descending:
			byNumber = -byNumber
		}
		return cmp.Or(byNumber, byName)
	}
}
