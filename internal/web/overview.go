package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

const domainsPerPage = 50

// Overview is the data of the first page.
type Overview struct {
	// Series counts all domains of the team.
	service.Series
	service.DomainList
	// Marks are changes of policies in the period.
	Marks []ui.Mark
	// News are the events since yesterday, newest first.
	News []dmarcd.Event
	// Actions are domains with a next action, most urgent first, and Finished others; Troubled is
	// the number of domains that need attention.
	Actions, Finished []adviceView
	Troubled          int
}

const (
	// maxNews and maxActions limit the lists above the table.
	maxNews    = 20
	maxActions = 6
	// maxMarkEvents is the number of events searched for policy changes.
	maxMarkEvents = 200
)

func (c *call) overview(filter service.DomainFilter, period ui.Period) (Overview, error) {
	var found Overview
	var errActions error
	var group recovered.Group // each of the two sorts all domains by their mail
	group.Go(func() { errActions = c.addActions(&found) })
	err := c.listAndNews(&found, filter, period)
	group.Wait()
	return found, cmp.Or(err, errActions)
}

// listAndNews reads all of the overview except the actions.
func (c *call) listAndNews(found *Overview, filter service.DomainFilter, period ui.Period) (err error) {
	ctx := c.r.Context()
	if found.DomainList, err = c.team.DomainRows(ctx, filter); err != nil {
		return err
	}
	if found.Series, err = c.teamSeries(period); err != nil {
		return err
	}
	if found.News, err = c.news(); err != nil {
		return err
	}
	changed, err := c.team.Events(ctx, service.EventFilter{Until: (period.To + 1).Time()}, 0, maxMarkEvents)
	found.Marks = c.policyMarks(since(changed, period.From.Time()))
	return err
}

// news returns the events since the start of yesterday.
func (c *call) news() ([]dmarcd.Event, error) {
	yesterday := (dmarcd.DayOf(c.web.options.Now()) - 1).Time()
	events, err := c.team.Events(c.r.Context(), service.EventFilter{}, 0, maxNews)
	return since(events, yesterday), err
}

// addActions reads the next actions of domains, and the number of domains that need attention.
func (c *call) addActions(found *Overview) error {
	worst, err := c.team.DomainRows(c.r.Context(), service.DomainFilter{Trouble: true})
	if err != nil {
		return err
	}
	all, err := c.team.TopAdvice(c.r.Context())
	if err != nil {
		return err
	}
	found.Troubled = worst.Matching
	for i := range all {
		list := &found.Actions
		if all[i].Next() == nil {
			list = &found.Finished
		}
		if len(*list) < maxActions {
			*list = append(*list, c.adviceView(&all[i]))
		}
	}
	return nil
}

type overviewView struct {
	Overview
	Filter overviewFilter
	Period ui.PeriodChoice
	Chart  ui.Chart
	Table  ui.Table
	Pager  ui.Pager
	// Start is the getting-started guide, nil if the team has received a report.
	Start *startView
	// AllTroubled is the list of domains that need attention.
	AllTroubled string
}

type overviewFilter struct {
	Search, Policy string
	Trouble        bool
	Policies       []ui.Choice
	Tag            tagChoice
	// Kept are parameters that the filter keeps; Clear is the page without a filter, ""
	// if there is none.
	Kept  []ui.Choice
	Clear string
}

func (s *Web) overview(c *call) error {
	const path = Prefix + "/"
	query := c.r.URL.Query()
	order := ui.NewSorting(path, query, "-messages", "name", "grade", "policy", "passing")
	page := pageNumber(query)
	period := ui.PeriodOf(query, s.options.Now())
	asked := service.DomainFilter{
		Days: period.Days(), Search: query.Get("search"), Policy: query.Get("policy"), Trouble: query.Get("trouble") != "",
		Sort: order.By, Offset: (page - 1) * domainsPerPage, Limit: domainsPerPage,
	}
	if c.wantsCSV("domains") {
		asked.Offset, asked.Limit = 0, maxCSVRows
	}
	found, err := c.overview(asked, period)
	if err != nil {
		return err
	}
	tags, err := c.tags()
	if err != nil {
		return err
	}
	view := overviewView{
		Overview: found,
		Filter: overviewFilter{
			Search: asked.Search, Policy: asked.Policy, Trouble: asked.Trouble, Tag: tags,
			Policies: []ui.Choice{{Value: "", Label: "any policy"}, {Value: "reject", Label: "reject"}, {Value: "quarantine", Label: "quarantine"}, {Value: "none", Label: "none"}, {Value: "missing", Label: "no policy"}, {Value: "unknown", Label: "not known yet"}},
			Kept:     ui.Kept(query, "search", "policy", "trouble", "tag"),
		},
		Period: ui.NewPeriodChoice(path, query, period, s.options.Now()),
		Chart:  messageChart(countsSentence(found.Counts), found.Days, found.Marks),
		Table:  c.domainTable(found, period, order),
		Pager:  ui.NumberedPager(path, query, page, domainsPerPage, found.Matching),
	}
	if asked.Search != "" || asked.Policy != "" || asked.Trouble || c.tag != "" {
		view.Filter.Clear = ui.WithQuery(path, query, "search", "", "policy", "", "trouble", "", "tag", "", "page", "")
	}
	if view.Start, err = c.start(); err != nil {
		return err
	}
	view.Chart.LinkDays(Prefix+"/reports", carried(query), "kind", string(dmarcd.KindAggregate))
	view.AllTroubled = c.link(path, "trouble", "yes")
	view.Chart.CSV = ui.WithQuery(path, query, "csv", view.Chart.ID)
	return c.render(http.StatusOK, Page{Template: "overview", Title: "Overview", Section: "Overview", Charts: true}, view, view.Table, view.Chart.Table())
}

func (c *call) domainTable(found Overview, period ui.Period, order ui.Sorting) ui.Table {
	t := ui.Table{
		ID: "domains", Caption: "Domains", CSV: ui.WithQuery(order.Path, c.r.URL.Query(), "csv", "domains", "page", ""),
		Columns: []ui.Column{
			order.Column("Domain", "name", false),
			order.Column("Grade", "grade", false),
			order.Column("Policy", "policy", false),
			order.Column("Messages", "messages", true),
			order.Column("Passes DMARC", "passing", true),
			{Title: "Trend"},
			{Title: "Tags", Wide: true},
		},
		Empty: ui.Empty{Title: "No domain matches", Advice: "Change or clear the filter above.", Action: ui.Link{Text: "Show all domains", Href: ui.WithQuery(order.Path, c.r.URL.Query(), "search", "", "policy", "", "trouble", "", "tag", "", "page", "")}},
	}
	t.Columns[0].Wide, t.Columns[0].Note = true, "State"
	for _, d := range found.Rows {
		name := ui.LinkTo(d.Name, c.link(domainPath(d.Name))).Copyable()
		policy := rowPolicy(d)
		passing := ui.Share(d.Counts.Compliant, d.Counts.Total())
		switch {
		case !d.Known:
			name = name.Noted("DNS has not answered yet")
		case d.Parked && d.Policy == "reject":
			name, passing = name.Noted("parked: its policy asks receivers to reject all mail that spoofs it"), ui.Cell{Kind: ui.CellBadge, Text: "parked", Tone: "good"}
		case !d.Active:
			name = name.Noted("reports are not sent here yet")
		}
		t.Rows = append(t.Rows, []ui.Cell{
			name, ui.Grade(d.Grade).Linked(c.link(domainPath(d.Name) + "/dns")), policy, ui.Count(d.Counts.Total()),
			passing, ui.Spark(trendOf(d.Days, period)), ui.Links(c.tagLinks(d.Tags)...),
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
	return DomainHead{Domain: domain, Applied: applied(domain)}.PolicyBadge()
}

func policyCell(policy string) ui.Cell {
	if policy == "" {
		return ui.Cell{Kind: ui.CellBadge, Text: "no policy", Tone: "bad"}
	}
	return ui.Badge(policy)
}

// domainPath is the path of the pages of a domain.
func domainPath(name string) string { return Prefix + "/domains/" + url.PathEscape(name) }

// countsSentence summarizes a chart of messages.
func countsSentence(c dmarcd.Counts) string {
	if c.Total() == 0 {
		return "No messages were reported in this period."
	}
	return dmarcd.FormatNumber(c.Total()) + " messages were reported; " + dmarcd.FormatShare(c.Compliant, c.Total()) + " pass DMARC."
}
