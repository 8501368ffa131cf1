package web

import (
	"net/http"
	"net/url"

	"github.com/dmarcd/dmarcd"
)

// Group is what sources are grouped by.
type Group string

// The groups.
const (
	GroupNetwork  Group = "network" // a known sender, or the network it sends from
	GroupCountry  Group = "country"
	GroupAddress  Group = "address"
	GroupReporter Group = "reporter"
	GroupSelector Group = "selector"
	GroupFrom     Group = "header_from"
	GroupEnvelope Group = "envelope_from"
)

// groups lists them in the order of the page.
var groups = []struct {
	group        Group
	title, plain string
}{
	{GroupNetwork, "Networks", "Network"},
	{GroupCountry, "Countries", "Country"},
	{GroupAddress, "Addresses", "Address"},
	{GroupSelector, "DKIM selectors", "DKIM selector"},
	{GroupEnvelope, "Envelope domains", "Envelope domain"},
	{GroupFrom, "From domains", "From domain"},
	{GroupReporter, "Reporters", "Reporter"},
}

// SourceQuery says which mail the pages of sources are about.
type SourceQuery struct {
	// Domain narrows it to one domain of the team, "" is all.
	Domain string
	Period Period
	// Group is what the sources are grouped by, Key one source of that group.
	Group Group
	Key   string
	// Search is a part of the names.
	Search string
	// Failing leaves out sources all of whose mail is compliant.
	Failing bool
	// Sort is name, messages, passing, spf, dkim, first or last, with "-" before it
	// for descending.
	Sort string
	// After is a cursor, "" for the beginning; Limit how many at most, which for a
	// file is 100,000.
	After string
	Limit int
	// Parts is how many sources of each other group the page of a source shows, 0 for
	// a few.
	Parts int
}

// SourceList is a part of the sources.
type SourceList struct {
	Sources []SourceRow
	Next    string
	// Counts is the sum over all that match.
	Counts dmarcd.Counts
	// Readiness is about the domain of the query, nil where it is about all.
	Readiness *Readiness
}

// SourceRow is a source in the list.
type SourceRow struct {
	// Key names the source among those of its group, Name is for people.
	Key, Name string
	// Detail is what else is known: the kind of a sender, the name of an
	// address, the country of a network.
	Detail string
	Counts dmarcd.Counts
	// Trend is the messages of each day of the period.
	Trend []int64
	// First and Last are the days of the period on which it was first and last seen:
	// what was before is not looked at.
	First, Last dmarcd.Day
	// Other tells that the row is the sum of all sources that are not listed one by
	// one.
	Other bool
}

// Readiness says whether the policy of a domain may be tightened, as far as reports
// can tell.
type Readiness struct {
	// Ready tells that nothing speaks against it, and Reasons say why.
	Ready   bool
	Reasons []string
	// Affected counts the messages that a policy of quarantine or reject would be
	// applied to, of All; Known are those of senders that are probably the owner's.
	All, Affected, Known int64
}

// Summary tells in a sentence what the policy would do.
func (r Readiness) Summary() string {
	return "It would be applied to " + number(r.Affected) + " of " + number(r.All) + " messages, " +
		number(r.Known) + " of them from senders that are probably yours."
}

const sourcesPerPage = 50

type sourcesView struct {
	Query  SourceQuery
	Groups []tab
	Period PeriodChoice
	Table  Table
	Flow   Chart
	Pager  Pager
	Path   string // of the page, for its filter
	// Kept is what the filter leaves alone; Clear leads to the page without it, ""
	// where nothing is filtered.
	Kept  []Choice
	Clear string
	// Readiness is nil where there is nothing to say about it.
	Readiness *Readiness
}

func (s *Web) sources(c *call) error {
	view, err := s.loadSources(c, Prefix+"/sources", c.r.URL.Query().Get("domain"))
	if err != nil {
		return err
	}
	if c.wantsCSV("flow") {
		return c.csv(view.Flow.table())
	}
	if c.wantsCSV("sources") {
		return c.csv(view.Table)
	}
	return c.render(http.StatusOK, Page{Template: "sources", Title: "Sources", Section: "Sources", Charts: true}, view)
}

type domainSourcesView struct {
	domainView
	sourcesView
}

func (s *Web) domainSources(c *call) error {
	page, head, err := s.domainPage(c, "domainsources", "Sources")
	if err != nil {
		return err
	}
	page.Charts = true
	view, err := s.loadSources(c, domainPath(head.Head.Name)+"/sources", head.Head.Name)
	if err != nil {
		return err
	}
	if c.wantsCSV("flow") {
		return c.csv(view.Flow.table())
	}
	if c.wantsCSV("sources") {
		return c.csv(view.Table)
	}
	return c.render(http.StatusOK, page, domainSourcesView{head, view})
}

// sourceQuery reads what a page of sources is asked for.
func (s *Web) sourceQuery(query url.Values, domain string) SourceQuery {
	q := SourceQuery{
		Domain: normalDomain(domain), Period: periodOf(query, s.options.Now()), Group: GroupNetwork, Search: query.Get("search"),
		Failing: query.Get("failing") != "", After: query.Get("after"), Limit: sourcesPerPage,
	}
	for _, g := range groups {
		if query.Get("group") == string(g.group) {
			q.Group = g.group
		}
	}
	return q
}

func (s *Web) loadSources(c *call, path, domain string) (sourcesView, error) {
	query := c.r.URL.Query()
	asked := s.sourceQuery(query, domain)
	order := newSorting(path, query, "-messages", "name", "passing", "spf", "dkim", "first", "last")
	asked.Sort = order.by
	if c.wantsCSV("sources") {
		asked.After, asked.Limit = "", maxCSVRows
	}
	view := sourcesView{
		Query: asked, Path: path, Kept: kept(query, "search", "failing"), Groups: groupTabs(path, query, asked.Group),
		Period: periodChoice(path, query, asked.Period, s.options.Now()),
	}
	if asked.Search != "" || asked.Failing {
		view.Clear = withQuery(path, query, "search", "", "failing", "", "after", "")
	}
	found, err := c.team.Sources.Sources(c.r.Context(), asked)
	if err != nil {
		return sourcesView{}, err
	}
	flows, err := c.team.Sources.Flows(c.r.Context(), asked)
	if err != nil {
		return sourcesView{}, err
	}
	view.Readiness = found.Readiness
	view.Pager = cursorPager(path, query, found.Next)
	view.Flow = flowChart(flows, withQuery(path, query, "csv", "flow"))
	view.Table = sourceTable(found.Sources, asked, order)
	view.Table.CSV = withQuery(path, query, "csv", "sources", "after", "")
	switch {
	case view.Clear != "":
		view.Table.Empty = Empty{"No source matches", "Change or clear the filter above.", Link{"Show all sources", view.Clear}}
	case domain != "":
		view.Table.Empty.Advice = "No report told of mail in this time. Choose more days, or see in the set-up guide whether reports come here."
		view.Table.Empty.Action = Link{"Set-up guide", domainPath(domain) + "/setup"}
	}
	return view, nil
}

// groupTabs lead to the same mail in other groups.
func groupTabs(path string, query url.Values, current Group) []tab {
	tabs := make([]tab, len(groups))
	for i, g := range groups {
		tabs[i] = tab{Link{g.title, withQuery(path, query, "group", string(g.group), "after", "", "search", "")}, g.group == current}
	}
	return tabs
}

// sourceTable shows sources with how each does.
func sourceTable(rows []SourceRow, asked SourceQuery, order sorting) Table {
	t := Table{
		ID: "sources", Caption: "Sources by " + string(asked.Group),
		Columns: []Column{
			order.column(plainGroup(asked.Group), "name", false),
			order.column("Messages", "messages", true),
			order.column("Compliant", "passing", true),
			order.column("SPF", "spf", true),
			order.column("DKIM", "dkim", true),
			{Title: "Trend"},
			order.column("First in this time", "first", false),
			order.column("Last in this time", "last", false),
		},
		Empty: Empty{"No sources", "No report told of mail in this time. Choose more days, or see whether reports come in.", Link{"Reports", Prefix + "/reports"}},
	}
	t.Columns[0].Wide, t.Columns[0].Note = true, "Detail"
	for _, row := range rows {
		total := row.Counts.Total()
		t.Rows = append(t.Rows, []Cell{
			asked.cell(row), count(total), share(row.Counts.Compliant, total),
			share(row.Counts.SPF, total), share(row.Counts.DKIM, total), spark(row.Trend), text(row.First.String()), text(row.Last.String()),
		})
	}
	return t
}

func plainGroup(group Group) string {
	for _, g := range groups {
		if g.group == group {
			return g.plain
		}
	}
	return ""
}

// cell names a source and leads to it. What programs understand can be copied.
func (q SourceQuery) cell(row SourceRow) Cell {
	if row.Other {
		return text(row.Name).noted(row.Detail)
	}
	cell := link(row.Name, sourcePath(q, row.Key)).noted(row.Detail)
	switch q.Group {
	case GroupAddress, GroupSelector, GroupFrom, GroupEnvelope:
		return cell.copyable()
	}
	return cell
}

// sourcePath leads to one source, within the same days and domain.
func sourcePath(asked SourceQuery, key string) string {
	query := url.Values{"from": {asked.Period.From.String()}, "to": {asked.Period.To.String()}}
	if asked.Domain != "" {
		query.Set("domain", asked.Domain)
	}
	return Prefix + "/sources/" + string(asked.Group) + "/" + url.PathEscape(key) + "?" + query.Encode()
}
