package insight

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/rollup"
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

// maxParts is how many sources of another group are listed one by one.
const maxParts = MaxListed / 4

// partRows is the default number of sources of another group.
const partRows = 20

// selection is the mail of one source.
type selection struct {
	group  Group
	key    string
	groups map[Group]*groupTable
	days   byDay
}

// byDay gathers records by day.
type byDay map[dmarcd.Day]*sum

func (byDay) begin(*rollup.Block) {}

func (d byDay) add(share *rollup.Share, records []rollup.Record) {
	of := d[share.Day]
	if of == nil {
		of = new(sum)
		d[share.Day] = of
	}
	for i := range records {
		of.add(share, &records[i])
	}
}

// choose gathers the mail of a source.
func (m *Mail) choose(ctx context.Context, q Query) (*selection, error) {
	if m.chosen != nil && m.chosen.group == q.Group && m.chosen.key == q.Key {
		return m.chosen, nil
	}
	if err := m.count(ctx); err != nil {
		return nil, err
	}
	s := &selection{group: q.Group, key: q.Key, groups: make(map[Group]*groupTable), days: make(byDay)}
	gatherers := []gatherer{s.days}
	for _, group := range Groups() {
		s.groups[group] = m.groupTable(group, maxParts, maxParts*3/2)
		gatherers = append(gatherers, s.groups[group])
	}
	if err := m.scanTables(ctx, m.only(q.Group, q.Key), gatherers...); err != nil {
		return nil, err
	}
	m.chosen = s
	return s, nil
}

// sources returns the sources of another group in the mail of the source.
func (s *selection) sources(m *Mail, group Group) sourceGroup {
	rows, other := s.groups[group].table.rows()
	return m.sources(group, rows, other, m.whole.hosts)
}

// Source returns the source that the query names by Group and Key, or
// dmarcd.ErrNotFound where there is no mail of it. The caller must not change it.
func (m *Mail) Source(ctx context.Context, q Query) (Source, error) {
	return answered(m, "source", q, func() (Source, error) { return m.oneSource(ctx, q) })
}

func (m *Mail) oneSource(ctx context.Context, q Query) (Source, error) {
	if q.Key == "" {
		return Source{}, dmarcd.ErrNotFound
	}
	records, err := m.choose(ctx, q)
	if err != nil {
		return Source{}, err
	}
	sources := records.sources(m, q.Group)
	if len(sources.sources) == 0 {
		return Source{}, dmarcd.ErrNotFound
	}
	m.describe(q.Group, sources.sources[:1], sources.hosts)
	if err := m.addSeen(ctx, q.Group, sources.sources[:1]); err != nil {
		return Source{}, err
	}
	p := m.period(m.tally.all)
	found := Source{Row: sources.sources[0].Row, Days: records.days.list(p), Facts: m.facts(sources.sources[0], records)}
	if p.span() > 0 {
		for _, day := range found.Days {
			found.Trend = append(found.Trend, day.Total())
		}
	}
	for _, group := range Groups() {
		if group == q.Group {
			continue
		}
		of := records.sources(m, group)
		rows := cmp.Or(q.Parts, partRows)
		part := Part{Group: group, More: max(len(of.sources)-rows, 0)}
		largest := top(of.sources, rows, largestFirst)
		m.describe(group, largest, of.hosts)
		for _, row := range largest {
			part.Rows = append(part.Rows, row.Row)
		}
		if of.other != nil && part.More == 0 {
			part.Rows = append(part.Rows, *of.other)
		}
		found.Parts = append(found.Parts, part)
	}
	return found, nil
}

func largestFirst(a, b *source) int {
	return cmp.Or(cmp.Compare(b.Counts.Total(), a.Counts.Total()), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key))
}

// list returns the sums of all days of a period or, where that is too long, of those with
// messages.
func (d byDay) list(p period) []DayCounts {
	for i := range p.span() {
		if day := p.first + dmarcd.Day(i); d[day] == nil {
			d[day] = new(sum)
		}
	}
	days := make([]DayCounts, 0, len(d))
	for day, of := range d {
		days = append(days, DayCounts{day, of.counts()})
	}
	slices.SortFunc(days, func(a, b DayCounts) int { return cmp.Compare(a.Day, b.Day) })
	return days
}

// facts says what is known of a source, whose records these are.
func (m *Mail) facts(of *source, records *selection) []Fact {
	var facts []Fact
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, Fact{name, value})
		}
	}
	switch records.group {
	case GroupAddress:
		origin := m.service.atlas.Locate(rollup.Address(of.form))
		add("Name", m.whole.hosts[of.form])
		network := top(records.sources(m, GroupNetwork).sources, 1, largestFirst)[0]
		add("Sender", network.Name)
		add("Autonomous system", systemName(origin.Network))
		if origin.Country != "" {
			add("Country", countryName(origin.Country))
		}
		return facts
	case GroupNetwork:
		network := &m.whole.networks.list[m.whole.senders.list[m.whole.senders.byKey[of.form]].network]
		add("First seen", of.Seen.First.String())
		add("Last seen", of.Seen.Last.String())
		add("Kind of sender", network.category())
		add("Autonomous system", systemName(senders.Network{Number: network.number, Name: network.name}))
	}
	addresses := records.sources(m, GroupAddress)
	more := ""
	if addresses.other != nil {
		more = "more than "
	}
	add("Addresses", more+strconv.Itoa(len(addresses.sources)))
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
