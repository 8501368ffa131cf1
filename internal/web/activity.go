package web

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// The views of the page Activity.
const (
	activityPath   = Prefix + "/activity"
	dnsPath        = activityPath + "/dns"
	everythingPath = activityPath + "/everything"
)

const activityPerPage = 50

// weekDays is the period of the lists without one in the query.
const weekDays = "7"

// kindDNS selects changes in DNS among everything.
const kindDNS = "dns"

// activityItem is a check that found changes in DNS, or an event.
type activityItem struct {
	At time.Time
	// ID is the id of the check, or the number of the event.
	ID     int64
	Change *facts.DomainChange
	Event  *dmarcd.Event
}

// activityRow is what happened to a domain at a time.
type activityRow struct {
	At     time.Time
	Domain string
	Href   string
	// Badges are the parts of the DNS that changed, or the kinds of events.
	Badges []ui.Cell
	// Texts describe the events, Lines the changes in DNS. More lines are not shown.
	Texts []string
	Lines []changeLine
	More  int
}

type activityView struct {
	Tabs   []ui.Tab
	Lead   string
	Period *ui.PeriodChoice
	Filter ui.Form
	Rows   []activityRow
	// OfDomain means that all rows are about one domain, which they do not repeat.
	OfDomain bool
	Empty    ui.Empty
	Pager    ui.Pager
	CSV      string
}

// activityTabs are the links to the views, which keep the domain and the tag.
func activityTabs(c *site.Call, current string) []ui.Tab {
	var tabs []ui.Tab
	for _, t := range []ui.Link{{Text: "Needs you", Href: activityPath}, {Text: "DNS", Href: dnsPath}, {Text: "Everything", Href: everythingPath}} {
		href := c.Link(t.Href, "domain", c.R.URL.Query().Get("domain"))
		tabs = append(tabs, ui.Tab{Link: ui.Link{Text: t.Text, Href: href}, Current: t.Href == current})
	}
	return tabs
}

// listed are the conditions of a list.
type listed struct {
	domain string
	part   facts.Part
	kinds  []dmarcd.EventKind
	times  service.Times
	// changes and events are what it contains.
	changes, events bool
}

// recentPeriod returns the period of the query, by default the last days.
func (s *Web) recentPeriod(query url.Values) ui.Period {
	if !query.Has("from") && !query.Has("to") && !query.Has("days") {
		query = maps.Clone(query)
		query.Set("days", weekDays)
	}
	return ui.PeriodOf(query, s.options.Now())
}

// dnsChanges shows the changes in DNS of all domains, one row for each domain and check.
func (s *Web) dnsChanges(c *site.Call) error {
	query := c.R.URL.Query()
	period := s.recentPeriod(query)
	asked := listed{domain: normalDomain(query.Get("domain")), part: partOf(query), times: service.TimesOf(period.Days()), changes: true}
	return s.showActivity(c, dnsPath, asked, period, partField(asked.part))
}

// everything shows the changes in DNS and all other events.
func (s *Web) everything(c *site.Call) error {
	query := c.R.URL.Query()
	period := s.recentPeriod(query)
	asked := listed{domain: normalDomain(query.Get("domain")), times: service.TimesOf(period.Days()), kinds: otherKinds, changes: true, events: true}
	kind := query.Get("kind")
	switch {
	case kind == kindDNS:
		asked.events = false
	case slices.Contains(otherKinds, dmarcd.EventKind(kind)):
		asked.kinds, asked.changes = []dmarcd.EventKind{dmarcd.EventKind(kind)}, false
	default:
		kind = ""
	}
	choices := []ui.Choice{{Value: "", Label: "any"}, {Value: kindDNS, Label: "DNS change"}}
	for _, k := range otherKinds {
		choices = append(choices, ui.Choice{Value: string(k), Label: phrase.Kind(k)})
	}
	return s.showActivity(c, everythingPath, asked, period, ui.Field{Name: "kind", Label: "Kind", Type: "select", Value: kind, Choices: choices})
}

// otherKinds are the kinds of events that are not shown as changes in DNS.
var otherKinds = kindsWithout(func(kind dmarcd.EventKind) bool {
	switch kind {
	case dmarcd.RecordAppeared, dmarcd.RecordChanged, dmarcd.RecordRemoved, dmarcd.PolicyWeakened, dmarcd.PolicyStrengthened:
		return true
	}
	return false
})

// partOf returns the part of the DNS in a query, "" for all.
func partOf(query url.Values) facts.Part {
	if part := facts.Part(query.Get("kind")); partNames[part] != "" {
		return part
	}
	return ""
}

// partField selects a part of the DNS.
func partField(part facts.Part) ui.Field {
	choices := []ui.Choice{{Value: "", Label: "all records"}}
	for _, p := range facts.Parts() {
		choices = append(choices, ui.Choice{Value: string(p), Label: partNames[p]})
	}
	return ui.Field{Name: "kind", Label: "Record", Type: "select", Value: string(part), Choices: choices}
}

func (s *Web) showActivity(c *site.Call, path string, asked listed, period ui.Period, kind ui.Field) error {
	found, err := requested(c, "activity", pages(activityPerPage, asked.read(c), activityItem.position))
	if err != nil {
		return err
	}
	if c.WantsCSV("activity") {
		return c.CSV(activityTable(found.Items))
	}
	tags, err := newTagChoice(c)
	if err != nil {
		return err
	}
	query := c.R.URL.Query()
	choice := ui.NewPeriodChoice(path, query, period, s.options.Now())
	fields := append([]ui.Field{{Name: "domain", Label: "Domain", Type: "search", Value: query.Get("domain"), Placeholder: "example.com"}, kind}, tags.fields()...)
	view := activityView{
		Tabs: activityTabs(c, path), Period: &choice, Rows: activityRows(c, found.Items),
		Filter: c.Carrying(ui.Form{Path: path, Method: "get", Submit: "Filter", Inline: true, Fields: fields}),
		Pager:  ui.CursorPager(path, query, next(found)), CSV: ui.WithQuery(path, query, "csv", "activity", "after", ""),
		Empty: ui.Empty{
			Title: "Nothing changed", Advice: "No change in this period, or none that matches the filter.",
			Action: ui.Link{Text: "Show the last 90 days", Href: ui.WithQuery(path, query, "days", "90", "from", "", "to", "", "after", "")},
		},
	}
	view.Lead = activityLead(view.Rows, view.Pager.Next != "" || view.Pager.First != "", asked.events)
	if period.Len() >= 90 {
		view.Empty.Action = ui.Link{}
	}
	title := map[string]string{dnsPath: "DNS changes", everythingPath: "Everything"}[path]
	return c.Render(http.StatusOK, site.Page{Template: "activity", Title: title + " · Activity", Section: "Activity"}, view)
}

// activityLead says what the list contains. A list that has other pages is not counted.
func activityLead(rows []activityRow, part, events bool) string {
	domains := map[string]bool{}
	for _, row := range rows {
		domains[row.Domain] = true
	}
	switch {
	case len(rows) == 0:
		return ""
	case events:
		return "Changes in DNS, alerts and other events, the latest first."
	case part:
		return "Changes in DNS, the latest first."
	case len(domains) == 1:
		return "The DNS of 1 domain changed."
	}
	return "The DNS of " + phrase.Count(int64(len(domains)), "domain") + " changed."
}

// read returns a function that reads the list, newest first.
func (l listed) read(c *site.Call) func(before service.Cursor, limit int) ([]activityItem, error) {
	return func(before service.Cursor, limit int) (items []activityItem, err error) {
		if l.changes {
			found, err := c.Team.DomainChanges(c.R.Context(), service.ChangeFilter{Domain: l.domain, Part: l.part, Times: l.times}, before, limit)
			if err != nil {
				return nil, err
			}
			for i := range found {
				items = append(items, activityItem{At: found[i].At, ID: int64(found[i].ID), Change: &found[i]})
			}
		}
		if l.events {
			found, err := c.Team.Events(c.R.Context(), service.EventFilter{Domain: l.domain, Kinds: l.kinds, Times: l.times}, before, limit)
			if err != nil {
				return nil, err
			}
			for i := range found {
				items = append(items, activityItem{At: found[i].At, ID: found[i].Seq, Event: &found[i]})
			}
		}
		slices.SortFunc(items, func(a, b activityItem) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(b.ID, a.ID)) })
		return items[:min(len(items), limit)], nil
	}
}

func (i activityItem) position() (time.Time, int64) { return i.At, i.ID }

// activityRows returns one row for each domain and check, and one for each other event.
func activityRows(c *site.Call, items []activityItem) []activityRow {
	var rows []activityRow
	type check struct {
		domain string
		at     time.Time
	}
	of := map[check]int{}
	for _, item := range items {
		if item.Change != nil {
			of[check{item.Change.Domain, item.At}] = len(rows)
			rows = append(rows, changeRow(c, item.Change))
			continue
		}
		e := *item.Event
		row, ok := of[check{e.Domain, e.At}]
		if e.Finding == "" || !ok {
			row = len(rows)
			rows = append(rows, activityRow{At: e.At, Domain: e.Domain})
			if e.Domain != "" {
				rows[row].Href = c.Link(domainPath(e.Domain))
			}
		}
		if e.Finding != "" {
			of[check{e.Domain, e.At}] = row
		}
		if cell := eventCell(e.Kind); !slices.ContainsFunc(rows[row].Badges, func(b ui.Cell) bool { return b.Text == cell.Text }) {
			rows[row].Badges = append(rows[row].Badges, cell)
		}
		rows[row].Texts = append(rows[row].Texts, phrase.Event(e))
	}
	return rows
}

// changeRow describes a check that found changes.
func changeRow(c *site.Call, change *facts.DomainChange) activityRow {
	row := activityRow{At: change.At, Domain: change.Domain, Href: c.Link(domainPath(change.Domain)), Lines: changeLines(change.Changes)}
	for _, part := range change.Parts {
		row.Badges = append(row.Badges, ui.Cell{Kind: ui.CellBadge, Text: partNames[part]})
	}
	for _, one := range change.Changes {
		if one.Fact != facts.NameDMARCApplied {
			continue
		}
		for _, e := range dmarcd.RecordEvents(dmarcd.Domain{Policy: one.Before}, dmarcd.Domain{Policy: one.After}) {
			row.Badges = append(row.Badges, eventCell(e.Kind))
		}
	}
	if row.More = len(row.Lines) - maxChangeLines; row.More > 0 {
		row.Lines = row.Lines[:maxChangeLines]
	}
	return row
}

// activityTable is the list as a file, with a line for each change.
func activityTable(items []activityItem) ui.Table {
	t := ui.Table{ID: "activity", Columns: []ui.Column{{Title: "When"}, {Title: "Domain"}, {Title: "Kind"}, {Title: "What"}, {Title: "Before"}, {Title: "After"}}}
	for _, item := range items {
		if e := item.Event; e != nil {
			t.Rows = append(t.Rows, []ui.Cell{ui.At(e.At), ui.Text(e.Domain), ui.Text(phrase.Kind(e.Kind)), ui.Text(phrase.Event(*e)), ui.Text(e.Before), ui.Text(e.After)})
			continue
		}
		for _, change := range item.Change.Changes {
			if part := change.Part(); part != "" {
				t.Rows = append(t.Rows, []ui.Cell{
					ui.At(item.At), ui.Text(item.Change.Domain), ui.Text(partNames[part]), ui.Text(changeTitle(change.Path())), ui.Text(change.Before), ui.Text(change.After),
				})
			}
		}
	}
	return t
}

type historyView struct {
	domainView
	List activityView
}

// history shows the changes in the DNS of a domain, as the page Activity does.
func (s *Web) history(c *site.Call) error {
	page, head, err := s.domainPage(c, "domain_changes", "Changes")
	if err != nil {
		return err
	}
	query := c.R.URL.Query()
	asked := listed{domain: head.Head.Name, part: partOf(query), changes: true}
	found, err := requested(c, "changes", pages(activityPerPage, asked.read(c), activityItem.position))
	if err != nil {
		return err
	}
	path := domainPath(head.Head.Name) + "/changes"
	view := historyView{domainView: head, List: activityView{
		OfDomain: true, Rows: activityRows(c, found.Items), Pager: ui.CursorPager(path, query, next(found)), CSV: ui.WithQuery(path, query, "csv", "changes", "after", ""),
		Filter: c.Carrying(ui.Form{Path: path, Method: "get", Submit: "Filter", Inline: true, Fields: []ui.Field{partField(asked.part)}}),
		Empty:  ui.Empty{Title: "No changes yet", Advice: "The DNS has not changed since the first check, or no change matches the filter."},
	}}
	table := activityTable(found.Items)
	table.ID = "changes"
	return c.Render(http.StatusOK, page, view, table)
}
