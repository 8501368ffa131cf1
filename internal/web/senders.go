package web

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// groups lists the groups in the order of the page.
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
	Query mailQuery
	// Classes are the classes of the domain's senders.
	Classes []classCount
	// Class is the selected class, "" for all.
	Class  string
	Groups []ui.Tab
	Period ui.PeriodChoice
	Table  ui.Table
	Flow   ui.Chart
	Pager  ui.Pager
	Path   string // of the page, for its filter
	Tags   tagChoice
	// Kept are parameters that the filter keeps; Clear is the page without a filter, ""
	// if there is none.
	Kept  []ui.Choice
	Clear string
	// Own is the page of the team's own senders.
	Own string
}

func (s *Web) sources(c *call) error {
	view, err := s.loadSources(c, Prefix+"/senders", c.r.URL.Query().Get("domain"))
	if err != nil {
		return err
	}
	return c.render(http.StatusOK, Page{Template: "sources", Title: "Senders", Section: "Senders", Charts: true}, view, view.Table, view.Flow.Table())
}

type domainSourcesView struct {
	domainView
	sourcesView
}

func (s *Web) domainSources(c *call) error {
	page, head, err := s.domainPage(c, "domainsources", "Senders")
	if err != nil {
		return err
	}
	page.Charts = true
	view, err := s.loadSources(c, domainPath(head.Head.Name)+"/senders", head.Head.Name)
	if err != nil {
		return err
	}
	return c.render(http.StatusOK, page, domainSourcesView{head, view}, view.Table, view.Flow.Table())
}

// sourceQuery parses the query of a page of sources.
func (s *Web) sourceQuery(query url.Values, domain string) mailQuery {
	q := mailQuery{Carried: carried(query), Domain: normalDomain(domain), Tag: askedTag(query.Get("tag")), Period: ui.PeriodOf(query, s.options.Now()), Query: insight.Query{
		Group: insight.GroupNetwork, Search: query.Get("sender"), Failing: query.Get("failing") != "",
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
	order := ui.NewSorting(path, query, "-messages", "name", "passing", "spf", "dkim", "first", "last")
	asked.Sort = order.By
	if c.wantsCSV("sources") {
		asked.After, asked.Limit = "", maxCSVRows
	}
	view := sourcesView{
		Query: asked, Path: path, Kept: ui.Kept(query, "sender", "failing", "tag"), Groups: groupTabs(path, query, asked.Group),
		Period: ui.NewPeriodChoice(path, query, asked.Period, s.options.Now()), Own: c.link(ownSendersPath),
	}
	if asked.Search != "" || asked.Failing || asked.Tag != "" {
		view.Clear = ui.WithQuery(path, query, "sender", "", "failing", "", "tag", "", "after", "")
	}
	if domain != "" {
		view.Kept = ui.Kept(query, "sender", "failing")
	} else {
		var err error
		if view.Tags, err = c.tags(); err != nil {
			return sourcesView{}, err
		}
	}
	// Read this before the mail: a request that holds it would wait for its own memory.
	if asked.Domain != "" && asked.Group == insight.GroupNetwork {
		if err := c.addClasses(&view, query); err != nil {
			return sourcesView{}, err
		}
	}
	mail, err := c.mailOf(asked)
	if err != nil {
		return sourcesView{}, err
	}
	asked.Assess = true
	found, err := mail.Sources(c.r.Context(), asked.Query)
	if err != nil {
		return sourcesView{}, err
	}
	flows, err := mail.Flows(c.r.Context(), asked.Query)
	if err != nil {
		return sourcesView{}, err
	}
	if view.Class == "" {
		view.Pager = ui.CursorPager(path, query, found.Next)
	}
	view.Flow = flowChart(flows, asked, ui.WithQuery(path, query, "csv", "flow"))
	if view.Class == "" {
		view.Table = sourceTable(found.Sources, asked, order)
	}
	view.Table.CSV = ui.WithQuery(path, query, "csv", "sources", "after", "")
	switch {
	case view.Clear != "":
		view.Table.Empty = ui.Empty{Title: "No sender matches", Advice: "Change or clear the filter above.", Action: ui.Link{Text: "Show all senders", Href: view.Clear}}
	case domain != "":
		view.Table.Empty.Advice = "No mail was reported in this period. Choose a longer period, or check in the setup guide whether reports are sent here."
		view.Table.Empty.Action = ui.Link{Text: "Setup guide", Href: c.link(domainPath(domain) + "/setup")}
	}
	return view, nil
}

// addClasses counts the senders of the domain by class and, if the query has a class,
// lists its senders.
func (c *call) addClasses(view *sourcesView, query url.Values) error {
	senders, err := c.senders(view.Query.Domain, view.Query.Period)
	if err != nil {
		return err
	}
	view.Classes = countClasses(senders, view.Query.Domain, query)
	wanted := dmarcd.Class(query.Get("class"))
	for _, count := range view.Classes {
		if count.Class != wanted {
			continue
		}
		view.Class = count.Title()
		senders = slices.DeleteFunc(senders, func(s insight.SimulatedSender) bool { return s.Class != wanted })
		view.Table = senderTable("sources", "Senders of the class "+view.Class, senders, view.Query)
		view.Clear = ui.WithQuery(view.Path, query, "class", "")
	}
	return nil
}

// groupTabs are the tabs of the groups.
func groupTabs(path string, query url.Values, current insight.Group) []ui.Tab {
	tabs := make([]ui.Tab, len(groups))
	for i, g := range groups {
		tabs[i] = ui.Tab{Link: ui.Link{Text: g.title, Href: ui.WithQuery(path, query, "group", string(g.group), "after", "")}, Current: g.group == current}
	}
	return tabs
}

// sourceTable shows sources with their pass rates.
func sourceTable(rows []insight.Row, asked mailQuery, order ui.Sorting) ui.Table {
	t := ui.Table{
		ID: "sources", Caption: "Sources by " + string(asked.Group),
		Columns: []ui.Column{
			order.Column(plainGroup(asked.Group), "name", false),
			order.Column("Messages", "messages", true),
			order.Column("Passes DMARC", "passing", true),
			order.Column("SPF", "spf", true),
			order.Column("DKIM", "dkim", true),
			{Title: "Trend"},
			order.Column("First in period", "first", false),
			order.Column("Last in period", "last", false),
		},
		Empty: ui.Empty{Title: "No senders", Advice: "No mail was reported in this period. Choose a longer period, or check whether reports arrive.", Action: ui.Link{Text: "Reports", Href: Prefix + "/reports"}},
	}
	t.Columns[0].Wide, t.Columns[0].Note = true, "Detail"
	assessed := asked.Assess && asked.Group == insight.GroupNetwork
	if assessed {
		t.Columns = slices.Insert(t.Columns, 1, ui.Column{Title: "Class", Wide: true, Note: "Evidence"})
	}
	for _, row := range rows {
		total := row.Counts.Total()
		cells := []ui.Cell{
			asked.cell(row), ui.Count(total), ui.Share(row.Counts.Compliant, total),
			ui.Share(row.Counts.SPF, total), ui.Share(row.Counts.DKIM, total), ui.Spark(row.Trend), ui.Text(row.First.String()), ui.Text(row.Last.String()),
		}
		if assessed {
			cells = slices.Insert(cells, 1, assessmentCell(row.Assessment))
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// assessmentCell is the class of a sender with its evidence, empty for other rows.
func assessmentCell(a *insight.Assessment) ui.Cell {
	if a == nil {
		return ui.Text("")
	}
	cell := classBadge(a.Class)
	if len(a.Evidence) > 0 {
		cell = cell.Noted(a.Evidence[len(a.Evidence)-1])
	}
	return cell
}

func plainGroup(group insight.Group) string {
	for _, g := range groups {
		if g.group == group {
			return g.plain
		}
	}
	return ""
}

// cell is the name of a source, as a link. Machine-readable names can be copied.
func (q mailQuery) cell(row insight.Row) ui.Cell {
	if row.Other {
		return ui.Text(row.Name).Noted(row.Detail)
	}
	cell := ui.LinkTo(row.Name, sourcePath(q, row.Key)).Noted(row.Detail)
	switch q.Group {
	case insight.GroupAddress, insight.GroupSelector, insight.GroupFrom, insight.GroupEnvelope:
		return cell.Copyable()
	}
	return cell
}

// sourcePath is the page of a source, with the same period, domain and filters.
func sourcePath(asked mailQuery, key string) string {
	query := carried(asked.Carried)
	query.Del("days")
	query.Set("from", asked.Period.From.String())
	query.Set("to", asked.Period.To.String())
	if asked.Domain != "" {
		query.Set("domain", asked.Domain)
	}
	if asked.Tag != "" {
		query.Set("tag", asked.Tag)
	}
	return Prefix + "/senders/" + string(asked.Group) + "/" + url.PathEscape(key) + "?" + query.Encode()
}
