package insight

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/rollup"
	"github.com/dmarcd/dmarcd/internal/senders"
)

// Breakdown is a row with its mail by day and by each other group.
type Breakdown struct {
	Row
	// Facts describe the sender, address or other subject of the row.
	Facts []Fact
	// Days are the counts of each day of the period or, if it is too long, of each day
	// with messages.
	Days []DayCounts
	// Parts are its mail by each other group.
	Parts []Part
}

// Fact is a label and its value.
type Fact struct{ Name, Value string }

// DayCounts are the counts of a day.
type DayCounts struct {
	Day dmarcd.Day
	dmarcd.Counts
}

// Part is the mail of a row by another group, most messages first.
type Part struct {
	Group Group
	Rows  []Row
	// More is the number of further rows that List would show individually.
	More int
}

// maxParts limits the rows of another group.
const maxParts = MaxListed / 4

// partRows is the default number of rows of another group.
const partRows = 20

// selection is the mail of one row.
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

// choose gathers the mail of a row.
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

// entries returns the selected mail by another group.
func (s *selection) entries(m *Mail, group Group) entryList {
	rows, other := s.groups[group].table.rows()
	return m.entries(group, rows, other, m.whole.hosts)
}

// Breakdown returns the row with the Group and Key of the query, or dmarcd.ErrNotFound if it
// has no mail. The caller must not change it.
func (m *Mail) Breakdown(ctx context.Context, q Query) (Breakdown, error) {
	return answered(m, "breakdown", q, func() (Breakdown, error) { return m.breakDown(ctx, q) })
}

func (m *Mail) breakDown(ctx context.Context, q Query) (Breakdown, error) {
	if q.Key == "" {
		return Breakdown{}, dmarcd.ErrNotFound
	}
	records, err := m.choose(ctx, q)
	if err != nil {
		return Breakdown{}, err
	}
	entries := records.entries(m, q.Group)
	if len(entries.entries) == 0 {
		return Breakdown{}, dmarcd.ErrNotFound
	}
	m.describe(q.Group, entries.entries[:1], entries.hosts)
	if err := m.addSeen(ctx, q.Group, entries.entries[:1]); err != nil {
		return Breakdown{}, err
	}
	p := m.period(m.tally.all)
	found := Breakdown{Row: entries.entries[0].Row, Days: records.days.list(p), Facts: m.facts(entries.entries[0], records)}
	if p.span() > 0 {
		for _, day := range found.Days {
			found.Trend = append(found.Trend, day.Total())
		}
	}
	for _, group := range Groups() {
		if group == q.Group {
			continue
		}
		of := records.entries(m, group)
		rows := cmp.Or(q.Parts, partRows)
		part := Part{Group: group, More: max(len(of.entries)-rows, 0)}
		largest := top(of.entries, rows, largestFirst)
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

func largestFirst(a, b *entry) int {
	return cmp.Or(cmp.Compare(b.Counts.Total(), a.Counts.Total()), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key))
}

// list returns the counts of all days of a period or, if it is too long, of those with
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

// facts describes a row, given its records.
func (m *Mail) facts(of *entry, records *selection) []Fact {
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
		network := top(records.entries(m, GroupSender).entries, 1, largestFirst)[0]
		add("Sender", network.Name)
		add("Autonomous system", systemName(origin.Network))
		if origin.Country != "" {
			add("Country", countryName(origin.Country))
		}
		return facts
	case GroupSender:
		network := &m.whole.networks.list[m.whole.senders.list[m.whole.senders.byKey[of.form]].network]
		add("First seen", phrase.Day(of.Seen.First))
		add("Last seen", phrase.Day(of.Seen.Last))
		add("Kind of sender", network.category())
		add("Autonomous system", systemName(senders.Network{Number: network.number, Name: network.name}))
	}
	addresses := records.entries(m, GroupAddress)
	more := ""
	if addresses.other != nil {
		more = "more than "
	}
	add("Addresses", more+strconv.Itoa(len(addresses.entries)))
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
