package insight

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

// Row is a source in a list.
type Row struct {
	// Key names the source among those of its group, Name is for people.
	Key, Name string
	// Detail is what else is known: what a known sender does, the country of a
	// network, the name of an address; "" where nothing is.
	Detail string
	Counts dmarcd.Counts
	// First and Last are the days of the first and the last report of its mail in the
	// period.
	First, Last dmarcd.Day
	// Seen are the first and the last day over all time: of senders (GroupNetwork)
	// that are listed one by one, else nil.
	Seen *dmarcd.SeenDays
	// Trend is the messages of each day of the period, if the query asks for it; nil
	// where that is too long, and in the row of other sources.
	Trend []int64
	// Other tells that the row is the sum of all sources that are not listed one by
	// one.
	Other bool
	// Assessment is what the source is to the domain, nil unless the query asks for it.
	Assessment *Assessment
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
// by one, in the order asked for. Where there are more, and the query leaves none out,
// the last row is the sum of the others, so that the rows add up to Counts. Every row is
// exact. Those listed are the ones with the most messages; where there are many times
// MaxListed, some of the smallest of them are chosen by the order of the records. A cursor that is none is a dmarcd.ErrInvalid. The caller must not change the list.
func (m *Mail) Sources(ctx context.Context, q Query) (List, error) {
	return answered(m, "sources", q, func() (List, error) { return m.listSources(ctx, q) })
}

func (m *Mail) listSources(ctx context.Context, q Query) (List, error) {
	found, err := m.group(ctx, q)
	if err != nil {
		return List{}, err
	}
	var after position
	if q.After != "" {
		if after, err = parseCursor[position](q.After); err != nil {
			return List{}, err
		}
	}
	var list List
	var sources []*source
	m.inTurn(ctx, func() { list, sources = m.page(q, &found, after) })
	if err := m.addSeen(ctx, q.Group, sources); err != nil {
		return List{}, err
	}
	if q.Trends {
		if err := m.addTrends(ctx, q.Group, m.period(found.all), sources); err != nil {
			return List{}, err
		}
	}
	if q.Assess {
		if err := m.assess(ctx, q.Group, sources); err != nil {
			return List{}, err
		}
	}
	for _, s := range sources {
		list.Sources = append(list.Sources, s.Row)
	}
	if found.other != nil && list.Next == "" {
		list.Sources = append(list.Sources, *found.other)
	}
	return list, nil
}

// page returns the sources of a page in their order, and the list without them. It leaves out the
// row of others where the query does.
func (m *Mail) page(q Query, found *sourceGroup, after position) (list List, sources []*source) {
	if q.Search != "" {
		m.describe(q.Group, found.sources, found.hosts)
	}
	sources = slices.DeleteFunc(found.sources, func(s *source) bool { return !q.matches(s.Row) || q.Key != "" && q.Key != s.Key })
	list.Matching = len(sources)
	for _, s := range sources {
		list.Counts.Add(s.Counts)
		s.rank = positionOf(s.Row, q.Sort)
	}
	if q.Key != "" || q.Search != "" || q.Failing {
		found.other = nil
	}
	if found.other != nil {
		list.Counts.Add(found.other.Counts)
	}
	compare := order(q.Sort)
	if q.After != "" {
		sources = slices.DeleteFunc(sources, func(s *source) bool { return compare(s.rank, after) <= 0 })
	}
	more := len(sources) > q.Limit
	sources = top(sources, q.Limit, func(a, b *source) int { return compare(a.rank, b.rank) })
	if more {
		list.Next = formatCursor(sources[q.Limit-1].rank)
	}
	m.describe(q.Group, sources, found.hosts)
	return list, sources
}

// source is a source while it is being classified.
type source struct {
	Row
	sum *sum
	// form is the address of a source that is one, as in rollups.
	form string
	rank position
}

// sourceGroup is the sources of a group that are listed, in no order, the row of all
// others, nil if there are none, and the sums of those and of all. hosts are names of
// addresses, for describe.
type sourceGroup struct {
	sources   []*source
	other     *Row
	rest, all sum
	hosts     map[string]string
}

// group returns all sources of a group.
func (m *Mail) group(ctx context.Context, q Query) (sourceGroup, error) {
	if q.Group == GroupNetwork {
		if err := m.count(ctx); err != nil {
			return sourceGroup{}, err
		}
		var found sourceGroup
		m.inTurn(ctx, func() { found = m.senderSources(m.tally.sums) })
		return found, nil
	}
	g := m.groupTable(q.Group, MaxListed, 3*MaxListed)
	var err error
	if q.Trends { // a page with trends shows the flows, too
		err = m.count(ctx, g)
	} else {
		err = m.scanTables(ctx, nil, g)
	}
	if err != nil {
		return sourceGroup{}, err
	}
	var rows []keySum
	var other sum
	m.inTurn(ctx, func() { rows, other = g.table.rows() })
	var hosts map[string]string
	if q.Group == GroupAddress {
		addresses := make([]address, len(rows))
		for i, row := range rows {
			addresses[i] = address{row.key, row.total()}
		}
		m.inTurn(ctx, func() { hosts, err = m.service.hosts(ctx, m.team.ID(), addresses) })
		if err != nil {
			return sourceGroup{}, err
		}
	}
	var found sourceGroup
	m.inTurn(ctx, func() { found = m.sources(q.Group, rows, other, hosts) })
	return found, nil
}

// senderSources returns the sources of sums by sender.
func (m *Mail) senderSources(sums []sum) sourceGroup {
	var rows []keySum
	for at := range sums {
		if sums[at].seen {
			rows = append(rows, keySum{m.whole.senders.keys[at], &sums[at]})
		}
	}
	rows, other := heaviest(rows, sum{}, MaxListed)
	return m.sources(GroupNetwork, rows, other, nil)
}

// sources returns the sources of sums by key. hosts are names of addresses.
func (m *Mail) sources(group Group, rows []keySum, other sum, hosts map[string]string) sourceGroup {
	found := sourceGroup{sources: make([]*source, len(rows)), rest: other, all: other, hosts: hosts}
	all := make([]source, len(rows))
	for i, row := range rows {
		all[i] = source{Row: Row{Key: row.key, Counts: row.counts(), First: row.first, Last: row.last}, sum: row.sum, form: row.key}
		m.label(group, &all[i])
		found.sources[i] = &all[i]
		found.all.merge(row.sum)
	}
	if other.seen {
		found.other = &Row{
			Key: otherKey, Name: "Other " + plurals[group], Detail: "Those with fewer messages", Counts: other.counts(),
			First: other.first, Last: other.last, Other: true,
		}
	}
	return found
}

// label gives a source its names; addresses get their details by describe.
func (m *Mail) label(group Group, s *source) {
	switch {
	case s.Key == notReported:
		s.Name = notReportedNames[group]
	case group == GroupNetwork:
		of := m.whole.senders.list[m.whole.senders.byKey[s.Key]]
		s.Name, s.Detail = m.whole.senderName(of), m.whole.networks.list[of.network].detail()
	case group == GroupCountry:
		s.Name, s.Detail = countryName(s.Key), s.Key
	case group == GroupAddress:
		s.Key = rollup.AddressText(s.form)
		s.Name = s.Key
	default:
		s.Name = s.Key
	}
}

// describe adds the details of addresses: to find the networks of all takes longer than
// to list them.
func (m *Mail) describe(group Group, sources []*source, hosts map[string]string) {
	if group != GroupAddress {
		return
	}
	for _, s := range sources {
		if s.Key != notReported {
			s.Detail = cmp.Or(hosts[s.form], m.service.atlas.Locate(rollup.Address(s.form)).Network.Name)
		}
	}
}

// maxTrends bounds the values of trends: 32 MiB.
const maxTrends = 4 << 20

// trends gathers the messages of each day for some keys of a group.
type trends struct {
	*grouping
	first dmarcd.Day
	days  int
	// starts are the slots of keys: one more than the index at which their trends begin.
	starts   map[string]slot
	messages []int64
}

func (t *trends) add(share *rollup.Share, records []rollup.Record) {
	day := int(share.Day - t.first)
	if day < 0 || day >= t.days {
		return
	}
	for i := range records {
		if at := t.of(share, &records[i]); at != 0 {
			addMessages(&t.messages[int(at-1)+day], records[i].Count) //nolint:gosec // there are few
		}
	}
}

// addTrends adds the messages of each day to sources of a group.
func (m *Mail) addTrends(ctx context.Context, group Group, p period, sources []*source) error {
	days := p.span()
	if days == 0 || len(sources) == 0 || days*len(sources) > maxTrends {
		return nil
	}
	t := &trends{grouping: m.grouping(group), first: p.first, days: days, starts: make(map[string]slot), messages: make([]int64, len(sources)*days)}
	for i, s := range sources {
		t.starts[s.form] = slot(i*days) + 1 //nolint:gosec // not negative
	}
	t.slot = func(key string) slot { return t.starts[key] }
	if err := m.scan(ctx, m.days, nil, t); err != nil {
		return err
	}
	for i, s := range sources {
		s.Trend = t.messages[i*days : (i+1)*days : (i+1)*days]
	}
	return nil
}

// position is where a source is in an order: by a number, then by name, then by key, so that
// no two have the same.
type position struct {
	Number int64  `json:"n"`
	Name   string `json:"t"`
	Key    string `json:"k"`
}

// perMillion is a share in whole numbers.
const perMillion = 1_000_000

// sorts are the numbers of the orders.
var sorts = map[string]func(Row) int64{
	"name":     func(Row) int64 { return 0 },
	"messages": func(r Row) int64 { return r.Counts.Total() },
	"passing":  func(r Row) int64 { return r.share(r.Counts.Compliant) },
	"spf":      func(r Row) int64 { return r.share(r.Counts.SPF) },
	"dkim":     func(r Row) int64 { return r.share(r.Counts.DKIM) },
	"first":    func(r Row) int64 { return int64(r.First) },
	"last":     func(r Row) int64 { return int64(r.Last) },
}

// share returns a part of the messages per million.
func (r Row) share(part int64) int64 {
	return int64(float64(part) / float64(max(r.Counts.Total(), 1)) * perMillion)
}

// sortOf returns an order, the default for one that does not exist.
func sortOf(sort string) (word string, descending bool) {
	word, descending = strings.CutPrefix(sort, "-")
	if sorts[word] == nil {
		return "messages", true
	}
	return word, descending
}

// positionOf returns the position of a source in an order.
func positionOf(r Row, sort string) position {
	word, _ := sortOf(sort)
	return position{Number: sorts[word](r), Name: strings.ToLower(r.Name), Key: r.Key}
}

// order returns how two positions compare in an order. Of equal numbers the names ascend, whatever
// the direction.
func order(sort string) func(a, b position) int {
	word, descending := sortOf(sort)
	return func(a, b position) int {
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
