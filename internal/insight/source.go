package insight

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/dmarcd/dmarcd"
)

// Source is one source, with everything that its mail can be told apart by.
type Source struct {
	Row
	// Facts are what is known of the source itself.
	Facts []Fact
	// Days has what was counted on each day of the period or, where that is too
	// long, on those days that have messages.
	Days []DayCounts
	// Parts are its mail by the other groups.
	Parts []Part
}

// Fact is a name and what stands under it.
type Fact struct{ Name, Value string }

// DayCounts is what was counted on a day.
type DayCounts struct {
	Day dmarcd.Day
	dmarcd.Counts
}

// Part is the mail of a source by another group, the largest first.
type Part struct {
	Group Group
	Rows  []Row
	// More is how many sources there are beside those in Rows.
	More int
}

// maxPartRows bounds how many sources of another group are told.
const maxPartRows = 100

// Source returns the source that the query names by Group and Key, or
// dmarcd.ErrNotFound where there is no mail of it.
func (m *Mail) Source(q Query) (Source, error) {
	rows := m.of(q)
	if q.Key == "" || len(rows) == 0 {
		return Source{}, dmarcd.ErrNotFound
	}
	found := Source{Row: m.group(q.Group, rows)[0], Days: m.daysOf(rows)}
	whole := []Row{found.Row}
	m.addTrends(q.Group, whole)
	found.Row = whole[0]
	found.Facts = m.facts(q.Group, rows)
	for _, group := range Groups() {
		if group == q.Group {
			continue
		}
		part := m.group(group, rows)
		slices.SortFunc(part, func(a, b Row) int {
			return cmp.Or(cmp.Compare(b.Counts.Total(), a.Counts.Total()), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key))
		})
		told := min(len(part), maxPartRows)
		found.Parts = append(found.Parts, Part{Group: group, Rows: part[:told], More: len(part) - told})
	}
	return found, nil
}

// of returns the rows of the source that the query names, or all where it names none.
func (m *Mail) of(q Query) []row {
	if q.Key == "" {
		return m.rows
	}
	var some []row
	keys := newKeys(q.Group)
	for i := range m.rows {
		if keys.of(&m.rows[i]) == q.Key {
			some = append(some, m.rows[i])
		}
	}
	return some
}

// daysOf adds up rows by day.
func (m *Mail) daysOf(rows []row) []DayCounts {
	counted := make(map[dmarcd.Day]dmarcd.Counts)
	for i := range m.span() {
		counted[m.first+dmarcd.Day(i)] = dmarcd.Counts{}
	}
	for _, r := range rows {
		sum := counted[r.Share.Day]
		sum.Add(r.Counts())
		counted[r.Share.Day] = sum
	}
	days := make([]DayCounts, 0, len(counted))
	for day, counts := range counted {
		days = append(days, DayCounts{day, counts})
	}
	slices.SortFunc(days, func(a, b DayCounts) int { return cmp.Compare(a.Day, b.Day) })
	return days
}

// facts says what is known of the source that all rows are of.
func (m *Mail) facts(group Group, rows []row) []Fact {
	var facts []Fact
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, Fact{name, value})
		}
	}
	if first := rows[0]; group == GroupAddress {
		add("Name", first.from.host)
		add("Network", m.networks[first.network].name)
		add("Autonomous system", systemName(first.from))
		add("Country", countryOf(first.from))
	} else if group == GroupNetwork {
		add("Kind of sender", string(m.networks[first.network].kind))
		if m.networks[first.network].number != 0 {
			add("Autonomous system", systemName(first.from))
		}
	}
	if group != GroupAddress {
		addresses := make(map[*address]struct{})
		for _, r := range rows {
			addresses[r.from] = struct{}{}
		}
		add("Addresses", strconv.Itoa(len(addresses)))
	}
	return facts
}

func systemName(a *address) string {
	if a.origin.Network.Number == 0 {
		return ""
	}
	name := "AS" + strconv.FormatUint(uint64(a.origin.Network.Number), 10)
	if a.origin.Network.Name != "" {
		name += " (" + a.origin.Network.Name + ")"
	}
	return name
}

func countryOf(a *address) string {
	if a.origin.Country == "" {
		return ""
	}
	return countryName(a.origin.Country)
}
