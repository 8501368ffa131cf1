package web

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

const domainsPerPage = 50

// Overview is the data of the first page.
type Overview struct {
	// Mail counts all domains of the team.
	Mail service.ClassSeries
	service.DomainList
	// Marks are changes of policies in the period.
	Marks []ui.Mark
	// Recent are the latest events, newest first.
	Recent []dmarcd.Event
	todo
}

const (
	// maxRecent limits the events that the overview names, of maxSearched ones.
	maxRecent, maxSearched = 3, 20
	// maxMarkEvents is the number of events searched for policy changes.
	maxMarkEvents = 200
)

func (s *Web) loadOverview(c *site.Call, filter service.DomainFilter, period ui.Period) (Overview, error) {
	var found Overview
	var errTodo error
	var group recovered.Group // each of the two sorts all domains by their mail
	group.Go(func() { found.todo, errTodo = s.newTodo(c) })
	err := listAndRecent(c, &found, filter, period)
	group.Wait()
	return found, cmp.Or(err, errTodo)
}

// listAndRecent reads all of the overview except what is to do.
func listAndRecent(c *site.Call, found *Overview, filter service.DomainFilter, period ui.Period) (err error) {
	ctx := c.R.Context()
	if found.DomainList, err = c.Team.DomainRows(ctx, filter); err != nil {
		return err
	}
	if found.Mail, err = teamClasses(c, period); err != nil {
		return err
	}
	latest, err := c.Team.Events(ctx, service.EventFilter{}, service.Cursor{}, maxSearched)
	if err != nil {
		return err
	}
	for _, e := range latest {
		if e.Domain != "" && len(found.Recent) < maxRecent { // tests are about none
			found.Recent = append(found.Recent, e)
		}
	}
	changed, err := c.Team.Events(ctx, service.EventFilter{Kinds: policyKinds, Times: service.TimesOf(period.Days())}, service.Cursor{}, maxMarkEvents)
	found.Marks = policyMarks(c, changed)
	return err
}

type overviewView struct {
	Overview
	// Title is the answer: how many domains are protected, and how many need the user.
	Title   string
	Filter  overviewFilter
	Period  ui.PeriodChoice
	Figures []figure
	Chart   ui.Chart
	Table   ui.Table
	Pager   ui.Pager
	// Start is the getting-started guide, nil if the team has received a report.
	Start *startView
	// Activity is the list of all events.
	Activity string
}

type overviewFilter struct {
	Search, Policy string
	Trouble        bool
	Policies       []ui.Choice
	Tag            tagChoice
	// Hidden are parameters that the filter does not change; Clear is the page without a filter, ""
	// if there is none.
	Hidden []ui.Choice
	Clear  string
}

func (s *Web) overview(c *site.Call) error {
	const path = Prefix + "/"
	query := c.R.URL.Query()
	order := ui.NewSorting(path, query, "-messages", "name", "grade", "policy", "passing")
	page := site.PageNumber(query)
	period := ui.PeriodOf(query, s.options.Now())
	asked := service.DomainFilter{
		Days: period.Days(), Search: query.Get("search"), Policy: query.Get("policy"), Trouble: query.Get("trouble") != "",
		Sort: order.By, Offset: (page - 1) * domainsPerPage, Limit: domainsPerPage,
	}
	if c.WantsCSV("domains") {
		asked.Offset, asked.Limit = 0, maxCSVRows
	}
	if c.WantsCSV(recordsCSV) {
		return exportRecords(c)
	}
	found, err := s.loadOverview(c, asked, period)
	if err != nil {
		return err
	}
	tags, err := newTagChoice(c)
	if err != nil {
		return err
	}
	view := overviewView{
		Overview: found, Title: found.title(c.Tag),
		Filter: overviewFilter{
			Search: asked.Search, Policy: asked.Policy, Trouble: asked.Trouble, Tag: tags,
			Policies: []ui.Choice{{Value: "", Label: "any policy"}, {Value: "reject", Label: "reject"}, {Value: "quarantine", Label: "quarantine"}, {Value: "none", Label: "none"}, {Value: "missing", Label: "no policy"}, {Value: "unknown", Label: "not known yet"}},
			Hidden:   ui.HiddenFields(query, "search", "policy", "trouble", "tag"),
		},
		Period:   ui.NewPeriodChoice(path, query, period, s.options.Now()),
		Figures:  classFigures(found.Mail, period.Len()),
		Chart:    classChart(found.Mail, found.Marks),
		Table:    domainTable(c, found, period, order),
		Pager:    ui.NumberedPager(path, query, page, domainsPerPage, found.Matching),
		Activity: c.Link(everythingPath),
	}
	if asked.Search != "" || asked.Policy != "" || asked.Trouble || c.Tag != "" {
		view.Filter.Clear = ui.WithQuery(path, query, "search", "", "policy", "", "trouble", "", "tag", "", "page", "")
	}
	if view.Start, err = newStartView(c); err != nil {
		return err
	}
	view.Chart.LinkDays(Prefix+"/reports", site.Carried(query), "kind", string(dmarcd.KindAggregate))
	view.Chart.CSV = ui.WithQuery(path, query, "csv", view.Chart.ID)
	return c.Render(http.StatusOK, site.Page{Template: "overview", Title: view.Title, Section: "Overview", Charts: true}, view, view.Table, view.Chart.Table())
}

func domainTable(c *site.Call, found Overview, period ui.Period, order ui.Sorting) ui.Table {
	t := ui.Table{
		ID: "domains", Caption: "Domains", CSV: ui.WithQuery(order.Path, c.R.URL.Query(), "csv", "domains", "page", ""),
		Columns: []ui.Column{
			order.Column("Domain", "name", false),
			order.Column("Grade", "grade", false),
			order.Column("Policy", "policy", false),
			order.Column("Messages", "messages", true),
			order.Column("Passes DMARC", "passing", true),
			{Title: "Trend"},
			{Title: "Tags", Wide: true},
		},
		Empty: ui.Empty{Title: "No domain matches", Advice: "Change or clear the filter above.", Action: ui.Link{Text: "Show all domains", Href: ui.WithQuery(order.Path, c.R.URL.Query(), "search", "", "policy", "", "trouble", "", "tag", "", "page", "")}},
	}
	t.Columns[0].Wide, t.Columns[0].Note = true, "State"
	for _, d := range found.Rows {
		name := ui.LinkTo(d.Name, c.Link(domainPath(d.Name))).Copyable()
		policy := rowPolicy(d)
		passing := ui.Percent(d.Counts.Compliant, d.Counts.Total())
		switch {
		case !d.Known:
			name = name.Noted("DNS has not answered yet")
		case d.Parked && d.Policy == "reject":
			name, passing = name.Noted("parked: its policy asks receivers to reject all mail that spoofs it"), ui.Cell{Kind: ui.CellBadge, Text: "parked", Tone: "good"}
		case !d.Active:
			name = name.Noted("reports are not sent here yet")
		}
		t.Rows = append(t.Rows, []ui.Cell{
			name, ui.Grade(d.Grade).Linked(c.Link(domainPath(d.Name) + "/dns")), policy, ui.Count(d.Counts.Total()),
			passing, ui.Spark(trendOf(d.Days, period)), ui.Links(tagLinks(c, d.Tags)...),
		})
	}
	if !slices.ContainsFunc(found.Rows, func(d service.DomainRow) bool { return len(d.Tags) > 0 }) {
		return t.Without("Tags")
	}
	return t
}

// rowPolicy is the policy that applies to a domain.
func rowPolicy(d service.DomainRow) ui.Cell {
	domain := dmarcd.Domain{Name: d.Name, Policy: d.Policy, Record: d.Record, RecordDomain: d.RecordDomain}
	if d.Known {
		domain.KnownAt = time.Unix(1, 0)
	}
	return DomainHead{Domain: domain, Applied: domain.EffectivePolicy()}.PolicyBadge()
}

// startView is the getting-started guide of a team.
type startView struct {
	service.Start
	MayEdit bool
	// Setup is the setup guide of a domain whose records are not published, "" if there
	// is none.
	Setup string
}

// newStartView returns the getting-started guide, nil if the team has received a report.
func newStartView(c *site.Call) (*startView, error) {
	start, err := c.Team.Start(c.R.Context())
	if err != nil || start.Domains > 0 && start.Reported {
		return nil, err
	}
	view := &startView{Start: start, MayEdit: c.Viewer.MayEdit()}
	if start.Open != "" {
		view.Setup = domainPath(start.Open) + "/setup"
	}
	return view, nil
}

func (s *Web) addSample(c *site.Call) error {
	return c.Finish(c.Team.AddSample(c.R.Context()), Prefix+"/", "sample-added")
}

func (s *Web) deleteSample(c *site.Call) error {
	return c.Finish(c.Team.DeleteSample(c.R.Context()), Prefix+"/", "sample-deleted")
}
