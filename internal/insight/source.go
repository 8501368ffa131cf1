package insight

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/senders"
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
	// More is how many sources there are beside those in Rows, as far as they are
	// listed one by one.
	More int
}

// partRows is how many sources of another group are told to whoever does not say.
const partRows = 20

// Source returns the source that the query names by Group and Key, or
// dmarcd.ErrNotFound where there is no mail of it.
func (m *Mail) Source(q Query) (Source, error) {
	if q.Key == "" {
		return Source{}, dmarcd.ErrNotFound
	}
	records := m.of(q)
	sources := m.group(records.column, records)
	if len(sources) == 0 {
		return Source{}, dmarcd.ErrNotFound
	}
	found := Source{Row: sources[0].Row, Days: m.daysOf(records), Facts: m.facts(q.Group, sources[0].at, records)}
	if m.span() > 0 {
		for _, day := range found.Days {
			found.Trend = append(found.Trend, day.Total())
		}
	}
	for _, group := range Groups() {
		if group == q.Group {
			continue
		}
		rows, other := m.heaviest(m.column(group), records)
		told := cmp.Or(q.Parts, partRows)
		part := Part{Group: group, More: max(len(rows)-told, 0)}
		for _, row := range foremost(rows, told, largestFirst) {
			part.Rows = append(part.Rows, row.Row)
		}
		if other != nil && part.More == 0 {
			part.Rows = append(part.Rows, *other)
		}
		found.Parts = append(found.Parts, part)
	}
	return found, nil
}

func largestFirst(a, b *source) int {
	return cmp.Or(cmp.Compare(b.Counts.Total(), a.Counts.Total()), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key))
}

// daysOf adds up records by day.
func (m *Mail) daysOf(records *selection) []DayCounts {
	counted := make(map[dmarcd.Day]*sum)
	for i := range m.span() {
		counted[m.first+dmarcd.Day(i)] = new(sum)
	}
	for i, of := range records.sums(byShare) {
		if !of.seen {
			continue
		}
		day := m.sent.Shares[i].Day
		if counted[day] == nil {
			counted[day] = new(sum)
		}
		counted[day].merge(&of)
	}
	days := make([]DayCounts, 0, len(counted))
	for day, of := range counted {
		days = append(days, DayCounts{day, of.counts()})
	}
	slices.SortFunc(days, func(a, b DayCounts) int { return cmp.Compare(a.Day, b.Day) })
	return days
}

// facts says what is known of the source at a place of a group, whose records these
// are.
func (m *Mail) facts(group Group, at uint32, records *selection) []Fact {
	var facts []Fact
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, Fact{name, value})
		}
	}
	switch {
	case group == GroupAddress && int(at) < len(m.addresses): // else it is all others
		from := &m.addresses[at]
		add("Name", from.host)
		of := foremost(m.group(m.column(GroupNetwork), records), 1, largestFirst)[0]
		add("Network", m.networks.list[of.at].name)
		add("Autonomous system", systemName(from.origin.Network))
		add("Country", countryOf(from))
		return facts
	case group == GroupNetwork:
		of := &m.networks.list[at]
		add("Kind of sender", string(of.kind))
		add("Autonomous system", systemName(senders.Network{Number: of.number, Name: of.name}))
	}
	addresses, more := 0, ""
	for i, of := range records.sums(byAddress) {
		if of.seen {
			addresses++
		}
		if of.seen && m.addresses[i].merged {
			more = "more than " // it stands for two at least
		}
	}
	add("Addresses", more+strconv.Itoa(addresses))
	return facts
}

func systemName(system senders.Network) string {
	if system.Number == 0 {
		return ""
	}
	name := systemKey(system.Number)
	if system.Name != "" && system.Name != name {
		name += " (" + system.Name + ")"
	}
	return name
}

func countryOf(a *address) string {
	if a.origin.Country == "" {
		return ""
	}
	return countryName(a.origin.Country)
}
