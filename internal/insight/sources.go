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
	// Trend is the messages of each day of the period; nil where that is too long.
	Trend []int64
}

// List is a part of the sources.
type List struct {
	Sources []Row
	// Next is what to ask for as After, "" at the end.
	Next string
	// Counts is the sum over all sources that match, Matching how many they are.
	Counts   dmarcd.Counts
	Matching int
}

// Sources returns the sources that the query asks for. A cursor that is none is a
// dmarcd.ErrInvalid.
func (m *Mail) Sources(q Query) (List, error) {
	rows := m.group(q.Group, m.rows)
	rows = slices.DeleteFunc(rows, func(r Row) bool { return !q.matches(r) || q.Key != "" && q.Key != r.Key })
	list := List{Matching: len(rows)}
	for _, r := range rows {
		list.Counts.Add(r.Counts)
	}
	ranked, compare := rank(rows, q.Sort), order(q.Sort)
	slices.SortFunc(ranked, func(a, b rankedRow) int { return compare(a.place, b.place) })
	if q.After != "" {
		after, err := parseCursor[place](q.After)
		if err != nil {
			return List{}, err
		}
		ranked = slices.DeleteFunc(ranked, func(r rankedRow) bool { return compare(r.place, after) <= 0 })
	}
	if len(ranked) > q.Limit {
		ranked = ranked[:q.Limit]
		list.Next = formatCursor(ranked[q.Limit-1].place)
	}
	for _, r := range ranked {
		list.Sources = append(list.Sources, r.Row)
	}
	m.addTrends(q.Group, list.Sources)
	return list, nil
}

// group adds up rows by their sources in a group, in no order.
func (m *Mail) group(group Group, rows []row) []Row {
	var sums []Row
	keys, places := newKeys(group), make(map[string]int)
	for i := range rows {
		r := &rows[i]
		key, day := keys.of(r), r.Share.Day
		n, known := places[key]
		if !known {
			n = len(sums)
			places[key] = n
			sums = append(sums, Row{Key: key, First: day, Last: day})
		}
		sum := &sums[n]
		sum.Counts.Add(r.Counts())
		sum.First, sum.Last = min(sum.First, day), max(sum.Last, day)
	}
	details := m.details(group)
	for i := range sums {
		sums[i].Name, sums[i].Detail = m.name(group, sums[i].Key), details[sums[i].Key]
	}
	return sums
}

// details returns what else is known of the sources of a group, by their keys.
func (m *Mail) details(group Group) map[string]string {
	details := make(map[string]string)
	switch group {
	case GroupNetwork:
		most := make(map[string]*address) // where most of a network's mail came from
		for i := range m.rows {
			r := &m.rows[i]
			if best := most[r.network]; best == nil || r.from.messages > best.messages ||
				r.from.messages == best.messages && r.from.text < best.text {
				most[r.network] = r.from
			}
		}
		for key, n := range m.networks {
			details[key] = string(n.kind)
			if !n.isKnown() && most[key] != nil && most[key].origin.Country != "" {
				details[key] = countryName(most[key].origin.Country)
			}
		}
	case GroupAddress:
		for _, a := range m.addresses {
			details[a.text] = cmp.Or(a.host, a.origin.Network.Name)
		}
	case GroupCountry:
		for _, a := range m.addresses {
			details[a.origin.Country] = a.origin.Country
		}
	}
	return details
}

// addTrends adds the messages of each day to the rows of a group.
func (m *Mail) addTrends(group Group, rows []Row) {
	days := m.span()
	if days == 0 || len(rows) == 0 {
		return
	}
	shown := make(map[string][]int64, len(rows))
	for i := range rows {
		rows[i].Trend = make([]int64, days)
		shown[rows[i].Key] = rows[i].Trend
	}
	keys := newKeys(group)
	for i := range m.rows {
		r := &m.rows[i]
		if trend := shown[keys.of(r)]; trend != nil {
			trend[r.Share.Day-m.first] += r.Count
		}
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

// rankedRow is a source with its place.
type rankedRow struct {
	Row
	place place
}

func rank(rows []Row, sort string) []rankedRow {
	ranked := make([]rankedRow, len(rows))
	for i, r := range rows {
		ranked[i] = rankedRow{r, placeOf(r, sort)}
	}
	return ranked
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
