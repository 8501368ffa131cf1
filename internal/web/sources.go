package web

import (
	"net/http"
	"net/url"

	"github.com/dmarcd/dmarcd/internal/insight"
)

// groups lists them in the order of the page.
var groups = []struct {
	group        insight.Group
	title, plain string
}{
	{insight.GroupNetwork, "Networks", "Network"},
	{insight.GroupCountry, "Countries", "Country"},
	{insight.GroupAddress, "Addresses", "Address"},
	{insight.GroupSelector, "DKIM selectors", "DKIM selector"},
	{insight.GroupEnvelope, "Envelope domains", "Envelope domain"},
	{insight.GroupFrom, "From domains", "From domain"},
	{insight.GroupReporter, "Reporters", "Reporter"},
}

const sourcesPerPage = 50

type sourcesView struct {
	Query  mailQuery
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
	Readiness *insight.Readiness
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
func (s *Web) sourceQuery(query url.Values, domain string) mailQuery {
	q := mailQuery{Domain: normalDomain(domain), Period: periodOf(query, s.options.Now()), Query: insight.Query{
		Group: insight.GroupNetwork, Search: query.Get("search"), Failing: query.Get("failing") != "",
		After: query.Get("after"), Limit: sourcesPerPage, Trends: true,
	}}
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
	mail, err := c.mailOf(asked)
	if err != nil {
		return sourcesView{}, err
	}
	found, err := mail.Sources(c.r.Context(), asked.Query)
	if err != nil {
		return sourcesView{}, err
	}
	if asked.Domain != "" {
		readiness, err := mail.Readiness(c.r.Context())
		if err != nil {
			return sourcesView{}, err
		}
		view.Readiness = &readiness
	}
	flows, err := mail.Flows(c.r.Context(), asked.Query)
	if err != nil {
		return sourcesView{}, err
	}
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
func groupTabs(path string, query url.Values, current insight.Group) []tab {
	tabs := make([]tab, len(groups))
	for i, g := range groups {
		tabs[i] = tab{Link{g.title, withQuery(path, query, "group", string(g.group), "after", "", "search", "")}, g.group == current}
	}
	return tabs
}

// sourceTable shows sources with how each does.
func sourceTable(rows []insight.Row, asked mailQuery, order sorting) Table {
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

func plainGroup(group insight.Group) string {
	for _, g := range groups {
		if g.group == group {
			return g.plain
		}
	}
	return ""
}

// cell names a source and leads to it. What programs understand can be copied.
func (q mailQuery) cell(row insight.Row) Cell {
	if row.Other {
		return text(row.Name).noted(row.Detail)
	}
	cell := link(row.Name, sourcePath(q, row.Key)).noted(row.Detail)
	switch q.Group {
	case insight.GroupAddress, insight.GroupSelector, insight.GroupFrom, insight.GroupEnvelope:
		return cell.copyable()
	}
	return cell
}

// sourcePath leads to one source, within the same days and domain.
func sourcePath(asked mailQuery, key string) string {
	query := url.Values{"from": {asked.Period.From.String()}, "to": {asked.Period.To.String()}}
	if asked.Domain != "" {
		query.Set("domain", asked.Domain)
	}
	return Prefix + "/sources/" + string(asked.Group) + "/" + url.PathEscape(key) + "?" + query.Encode()
}
