package web

import (
	"net/url"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// groups lists the groups in the order of the page.
var groups = []struct {
	group        insight.Group
	title, plain string
}{
	{insight.GroupSender, "Senders", "Sender"},
	{insight.GroupCountry, "Countries", "Country"},
	{insight.GroupAddress, "Addresses", "Address"},
	{insight.GroupSelector, "DKIM selectors", "DKIM selector"},
	{insight.GroupEnvelope, "Envelope domains", "Envelope domain"},
	{insight.GroupFrom, "From domains", "From domain"},
	{insight.GroupReporter, "Reporters", "Reporter"},
}

const sendersPerPage = 50

type sendersView struct {
	Query  mailQuery
	Groups []ui.Tab
	Period ui.PeriodChoice
	// Classified are the senders by class, nil for other groups.
	Classified *classified
	// Classes are filters by class, Class is the selected one, "" for all.
	Classes []classCount
	Class   string
	Table   ui.Table
	Flow    ui.Chart
	Pager   ui.Pager
	Path    string // of the page, for its filter
	Tags    tagChoice
	// Hidden are parameters that the filter does not change; Clear is the page without a filter, ""
	// if there is none.
	Hidden []ui.Choice
	Clear  string
	// Own is the page of the team's own senders.
	Own string
	// SPF is what to add to the SPF record of the domain, nil for nothing.
	SPF *spfAddition
}

func (s *Web) senders(c *site.Call) error { return s.showSenders(c, nil, nil) }

// showSenders shows the senders of all domains. written is a form that could not be saved, and why.
func (s *Web) showSenders(c *site.Call, written url.Values, problem error) error {
	view, err := s.loadSenders(c, Prefix+"/senders", c.R.URL.Query().Get("domain"), written, problem)
	if err != nil {
		return err
	}
	return c.Render(statusOf(problem), site.Page{Template: "senders", Title: "Senders", Section: "Senders", Charts: true}, view, view.Table, view.Flow.Table())
}

type domainSendersView struct {
	domainView
	sendersView
}

func (s *Web) domainSenders(c *site.Call) error { return s.showDomainSenders(c, nil, nil) }

// showDomainSenders shows the senders of a domain. written is a form that could not be saved, and why.
func (s *Web) showDomainSenders(c *site.Call, written url.Values, problem error) error {
	page, head, err := s.domainPage(c, "domainsenders", "Senders")
	if err != nil {
		return err
	}
	page.Charts = true
	spf, err := proposedSPF(c, head.Head.Name) // before the mail is read: it reads some, too
	if err != nil {
		return err
	}
	view, err := s.loadSenders(c, domainPath(head.Head.Name)+"/senders", head.Head.Name, written, problem)
	if err != nil {
		return err
	}
	view.SPF = spf
	return c.Render(statusOf(problem), page, domainSendersView{head, view}, view.Table, view.Flow.Table())
}

// mailQuery selects mail and its grouping.
type mailQuery struct {
	// Domain limits it to one domain of the team, "" for all. Tag is the tag of the page,
	// which links keep.
	Domain, Tag string
	Period      ui.Period
	// Carried are the parameters that links keep; see carried.
	Carried url.Values
	insight.Query
}

// senderQuery parses the query of a page of senders.
func (s *Web) senderQuery(query url.Values, domain string) mailQuery {
	q := mailQuery{Carried: site.Carried(query), Domain: normalDomain(domain), Tag: site.RequestedTag(query), Period: ui.PeriodOf(query, s.options.Now()), Query: insight.Query{
		Group: insight.GroupSender, Search: query.Get("sender"), Failing: query.Get("failing") != "",
		After: query.Get("after"), Limit: sendersPerPage, Trends: true,
	}}
	for _, g := range groups {
		if query.Get("group") == string(g.group) {
			q.Group = g.group
		}
	}
	return q
}

func (s *Web) loadSenders(c *site.Call, path, domain string, written url.Values, problem error) (sendersView, error) {
	query := c.R.URL.Query()
	asked := s.senderQuery(query, domain)
	order := ui.NewSorting(path, query, "-messages", "name", "passing", "spf", "dkim", "first", "last")
	asked.Sort, asked.Assess = order.By, true
	byClass := asked.Group == insight.GroupSender && !c.WantsCSV("senders")
	switch {
	case byClass:
		asked.After, asked.Limit, asked.Trends = "", maxClassed, false
	case c.WantsCSV("senders"):
		asked.After, asked.Limit = "", maxCSVRows
	}
	view := sendersView{
		Query: asked, Path: path, Hidden: ui.HiddenFields(query, "sender", "failing", "tag", "class", "open"), Groups: groupTabs(path, query, asked.Group),
		Period: ui.NewPeriodChoice(path, query, asked.Period, s.options.Now()), Own: c.Link(ownSendersPath),
	}
	if asked.Search != "" || asked.Failing || asked.Tag != "" || byClass && query.Get("class") != "" {
		view.Clear = ui.WithQuery(path, query, "sender", "", "failing", "", "tag", "", "after", "", "class", "", "page", "")
	}
	if domain != "" {
		view.Hidden = ui.HiddenFields(query, "sender", "failing", "class", "open")
	} else {
		var err error
		if view.Tags, err = newTagChoice(c); err != nil {
			return sendersView{}, err
		}
	}
	mail, err := c.Mail(asked.Domain, asked.Period)
	if err != nil {
		return sendersView{}, err
	}
	found, err := mail.List(c.R.Context(), asked.Query)
	if err != nil {
		return sendersView{}, err
	}
	flows, err := mail.Flows(c.R.Context(), asked.Query)
	if err != nil {
		return sendersView{}, err
	}
	view.Flow = flowChart(flows, classesOf(found.Rows), asked, ui.WithQuery(path, query, "csv", "flow"))
	if byClass {
		if err := view.classify(c, found, written, problem); err != nil {
			return sendersView{}, err
		}
	} else {
		view.Pager = ui.CursorPager(path, query, found.Next)
		view.Table = groupTable(found.Rows, asked, order)
	}
	view.Table.CSV = ui.WithQuery(path, query, "csv", "senders", "after", "", "class", "", "open", "")
	switch {
	case view.Clear != "":
		view.Table.Empty = ui.Empty{Title: "No sender matches", Advice: "Change or clear the filter above.", Action: ui.Link{Text: "Show all senders", Href: view.Clear}}
	case domain != "":
		view.Table.Empty.Advice = "No mail was reported in this period. Choose a longer period, or check in the setup guide whether reports are sent here."
		view.Table.Empty.Action = ui.Link{Text: "Setup guide", Href: c.Link(domainPath(domain) + "/setup")}
	}
	return view, nil
}

// classesOf returns the classes of senders by key.
func classesOf(rows []insight.Row) map[string]dmarcd.Class {
	of := map[string]dmarcd.Class{}
	for _, row := range rows {
		if row.Assessment != nil {
			of[row.Key] = row.Assessment.Class
		}
	}
	return of
}

// classify shows the senders by class instead of in one table.
func (v *sendersView) classify(c *site.Call, found insight.List, written url.Values, problem error) error {
	query := c.R.URL.Query()
	// Those without a class are the sum of the others.
	found.Rows = slices.DeleteFunc(slices.Clone(found.Rows), func(r insight.Row) bool { return r.Other })
	v.Table.Empty = ui.Empty{Title: "No senders", Advice: "No mail was reported in this period. Choose a longer period, or check whether reports arrive.", Action: ui.Link{Text: "Reports", Href: Prefix + "/reports"}}
	var err error
	if v.Classified, err = newClassified(c, v.Query, v.Path, found, written, problem); err != nil {
		return err
	}
	for _, class := range classes {
		count := classCount{Class: class.class, Href: ui.WithQuery(v.Path, query, "class", string(class.class), "after", "", "open", "", "page", "")}
		for _, row := range found.Rows {
			if row.Assessment != nil && row.Assessment.Class == class.class {
				count.Senders++
				count.Messages += row.Counts.Total()
			}
		}
		if count.Senders > 0 {
			v.Classes = append(v.Classes, count)
		}
		if query.Get("class") == string(class.class) {
			v.Class = class.title
		}
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

// groupTable shows rows with their pass rates.
func groupTable(rows []insight.Row, asked mailQuery, order ui.Sorting) ui.Table {
	t := ui.Table{
		ID: "senders", Caption: "Mail by " + string(asked.Group),
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
	assessed := asked.Assess && asked.Group == insight.GroupSender
	if assessed {
		t.Columns = slices.Insert(t.Columns, 1, ui.Column{Title: "Class", Wide: true, Note: "Evidence"})
	}
	for _, row := range rows {
		total := row.Counts.Total()
		cells := []ui.Cell{
			asked.cell(row), ui.Count(total), ui.Percent(row.Counts.Compliant, total),
			ui.Percent(row.Counts.SPF, total), ui.Percent(row.Counts.DKIM, total), ui.Spark(row.Trend), ui.OnDay(row.First), ui.OnDay(row.Last),
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

// cell is the name of a row, as a link. Machine-readable names can be copied.
func (q mailQuery) cell(row insight.Row) ui.Cell {
	if row.Other {
		return ui.Text(row.Name).Noted(row.Detail)
	}
	cell := ui.LinkTo(row.Name, senderPath(q, row.Key)).Noted(row.Detail)
	switch q.Group {
	case insight.GroupAddress, insight.GroupSelector, insight.GroupFrom, insight.GroupEnvelope:
		return cell.Copyable()
	}
	return cell
}

// senderPath is the page of a row, with the same period, domain and filters.
func senderPath(asked mailQuery, key string) string {
	query := site.Carried(asked.Carried)
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
