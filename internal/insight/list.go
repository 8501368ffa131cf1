package insight

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

// Row is the mail of one sender, country, address or other value of a group.
type Row struct {
	// Key identifies the row in its group, Name is for display.
	Key, Name string
	// Detail is the purpose of a known sender, the country of a network or the name of an
	// address, "" if unknown.
	Detail string
	Counts dmarcd.Counts
	// First and Last are the days of its first and last report in the period.
	First, Last dmarcd.Day
	// Seen are the first and the last day over all time: of listed senders
	// (GroupSender), else nil.
	Seen *dmarcd.SeenDays
	// Trend is the messages of each day of the period, if the query asks for it; nil
	// if the period is too long, and in the row of others.
	Trend []int64
	// Other marks the row of others: the sum of all rows that are not listed.
	Other bool
	// Assessment is the class of the sender with evidence, nil unless the query asks for it.
	Assessment *Assessment
}

// List is a page of rows.
type List struct {
	Rows []Row
	// Next is After of the next page, "" at the end.
	Next string
	// Counts is the sum over all rows that match, Matching the number of those that are
	// listed.
	Counts   dmarcd.Counts
	Matching int
}

// List returns a page of the rows that the query selects. At most MaxListed rows are listed,
// those with the most messages. If there are more and the query does not filter, the last row
// is the sum of the others, so that the rows add up to Counts. Every row is exact; with many
// times MaxListed, which of the smallest rows are listed depends on the order of the records.
// An invalid cursor is a dmarcd.ErrInvalid. The caller must not change the list.
func (m *Mail) List(ctx context.Context, q Query) (List, error) {
	return answered(m, "list", q, func() (List, error) { return m.listRows(ctx, q) })
}

func (m *Mail) listRows(ctx context.Context, q Query) (List, error) {
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
	var entries []*entry
	m.inTurn(ctx, func() { list, entries = m.page(q, &found, after) })
	if err := m.addSeen(ctx, q.Group, entries); err != nil {
		return List{}, err
	}
	if q.Trends {
		if err := m.addTrends(ctx, q.Group, m.period(found.all), entries); err != nil {
			return List{}, err
		}
	}
	if q.Assess {
		if err := m.assess(ctx, q.Group, entries); err != nil {
			return List{}, err
		}
	}
	for _, s := range entries {
		list.Rows = append(list.Rows, s.Row)
	}
	if found.other != nil && list.Next == "" {
		list.Rows = append(list.Rows, *found.other)
	}
	return list, nil
}

// page returns the entries of a page in their order, and the list without them. It drops the
// row of others if the query filters rows.
func (m *Mail) page(q Query, found *entryList, after position) (list List, entries []*entry) {
	if q.Search != "" {
		m.describe(q.Group, found.entries, found.hosts)
	}
	entries = slices.DeleteFunc(found.entries, func(s *entry) bool { return !q.matches(s.Row) || q.Key != "" && q.Key != s.Key })
	list.Matching = len(entries)
	for _, s := range entries {
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
		entries = slices.DeleteFunc(entries, func(s *entry) bool { return compare(s.rank, after) <= 0 })
	}
	more := len(entries) > q.Limit
	entries = top(entries, q.Limit, func(a, b *entry) int { return compare(a.rank, b.rank) })
	if more {
		list.Next = formatCursor(entries[q.Limit-1].rank)
	}
	m.describe(q.Group, entries, found.hosts)
	return list, entries
}

// entry is a Row while it is computed.
type entry struct {
	Row
	sum *sum
	// form is an address in the form of rollups (GroupAddress), else the key.
	form string
	rank position
}

// entryList has the listed entries of a group in no order, the row of others or nil, the
// sum of the others (rest) and of all mail (all), and the host names of addresses.
type entryList struct {
	entries   []*entry
	other     *Row
	rest, all sum
	hosts     map[string]string
}

// group returns all entries of a group.
func (m *Mail) group(ctx context.Context, q Query) (entryList, error) {
	if q.Group == GroupSender {
		if err := m.count(ctx); err != nil {
			return entryList{}, err
		}
		var found entryList
		m.inTurn(ctx, func() { found = m.senderEntries(m.tally.sums) })
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
		return entryList{}, err
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
			return entryList{}, err
		}
	}
	var found entryList
	m.inTurn(ctx, func() { found = m.entries(q.Group, rows, other, hosts) })
	return found, nil
}

// senderEntries returns the entries of sums by sender.
func (m *Mail) senderEntries(sums []sum) entryList {
	var rows []keySum
	for at := range sums {
		if sums[at].seen {
			rows = append(rows, keySum{m.whole.senders.keys[at], &sums[at]})
		}
	}
	rows, other := heaviest(rows, sum{}, MaxListed)
	return m.entries(GroupSender, rows, other, nil)
}

// entries returns the entries of sums by key. hosts are names of addresses.
func (m *Mail) entries(group Group, rows []keySum, other sum, hosts map[string]string) entryList {
	found := entryList{entries: make([]*entry, len(rows)), rest: other, all: other, hosts: hosts}
	all := make([]entry, len(rows))
	for i, row := range rows {
		all[i] = entry{Row: Row{Key: row.key, Counts: row.counts(), First: row.first, Last: row.last}, sum: row.sum, form: row.key}
		m.label(group, &all[i])
		found.entries[i] = &all[i]
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

// label sets the name and detail of an entry; describe sets the details of addresses.
func (m *Mail) label(group Group, s *entry) {
	switch {
	case s.Key == notReported:
		s.Name = notReportedNames[group]
	case group == GroupSender:
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

// describe sets the details of addresses. It is not part of label because it takes longer
// than the list itself.
func (m *Mail) describe(group Group, entries []*entry, hosts map[string]string) {
	if group != GroupAddress {
		return
	}
	for _, s := range entries {
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

// addTrends adds the messages of each day to entries of a group.
func (m *Mail) addTrends(ctx context.Context, group Group, p period, entries []*entry) error {
	days := p.span()
	if days == 0 || len(entries) == 0 || days*len(entries) > maxTrends {
		return nil
	}
	t := &trends{grouping: m.grouping(group), first: p.first, days: days, starts: make(map[string]slot), messages: make([]int64, len(entries)*days)}
	for i, s := range entries {
		t.starts[s.form] = slot(i*days) + 1 //nolint:gosec // not negative
	}
	t.slot = func(key string) slot { return t.starts[key] }
	if err := m.scan(ctx, m.days, nil, t); err != nil {
		return err
	}
	for i, s := range entries {
		s.Trend = t.messages[i*days : (i+1)*days : (i+1)*days]
	}
	return nil
}

// position is where a row is in an order: by a number, then by name, then by key, so that
// no two have the same.
type position struct {
	Number int64  `json:"n"`
	Name   string `json:"t"`
	Key    string `json:"k"`
}

// perMillion is the unit of rates in whole numbers.
const perMillion = 1_000_000

// sorts are the numbers of the orders.
var sorts = map[string]func(Row) int64{
	"name":     func(Row) int64 { return 0 },
	"messages": func(r Row) int64 { return r.Counts.Total() },
	"passing":  func(r Row) int64 { return r.rate(r.Counts.Compliant) },
	"spf":      func(r Row) int64 { return r.rate(r.Counts.SPF) },
	"dkim":     func(r Row) int64 { return r.rate(r.Counts.DKIM) },
	"first":    func(r Row) int64 { return int64(r.First) },
	"last":     func(r Row) int64 { return int64(r.Last) },
}

// rate returns a part of the messages per million.
func (r Row) rate(part int64) int64 {
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

// positionOf returns the position of a row in an order.
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
