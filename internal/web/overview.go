package web

import (
	"net/http"
	"net/url"

	"github.com/dmarcd/dmarcd"
)

// domainsPerPage is how many domains the overview shows at once.
const domainsPerPage = 50

// OverviewQuery says which domains the overview shows.
type OverviewQuery struct {
	Period Period
	// Search is a part of the names, Policy one of none, quarantine, reject,
	// missing and unknown; "" for all.
	Search, Policy string
	// Trouble leaves those alone that need nothing done.
	Trouble bool
	// Sort is name, grade, policy, messages or passing, with "-" before it for
	// descending.
	Sort string
	// Offset and Limit are the part of the list.
	Offset, Limit int
}

// Overview is what the first page shows.
type Overview struct {
	// Days counts all domains of the team, a value for each day of the period.
	Days []DayCounts
	// Counts is the period's sum, Before that of the period before it.
	Counts, Before dmarcd.Counts
	// Domains are those asked for, Matching how many there are, and All how many
	// the team has.
	Domains       []DomainRow
	Matching, All int
	// News is what changed since yesterday, the latest first.
	News []dmarcd.Event
	// Tasks is what to do next, the most urgent first; Troubled is how many domains
	// there is something to do for.
	Tasks    []Task
	Troubled int
}

// DomainRow is a domain in the list.
type DomainRow struct {
	Name, Grade, Policy string
	Active              bool
	// Known is false where the DNS has not given an answer yet.
	Known  bool
	Counts dmarcd.Counts
	// Trend is the messages of each day of the period.
	Trend []int64
}

// Task is something that an owner should do for a domain.
type Task struct {
	Domain string
	Level  dmarcd.Level
	What   string
}

type overviewView struct {
	Overview
	Filter overviewFilter
	Period PeriodChoice
	Chart  Chart
	Table  Table
	Pager  Pager
}

type overviewFilter struct {
	Search, Policy string
	Trouble        bool
	Policies       []Choice
	// Kept is what the filter leaves alone; Clear leads to the page without it, ""
	// where nothing is filtered.
	Kept  []Choice
	Clear string
}

func (s *Web) overview(c *call) error {
	const path = Prefix + "/"
	query := c.r.URL.Query()
	order := newSorting(path, query, "-messages", "name", "grade", "policy", "passing")
	page := pageNumber(query)
	asked := OverviewQuery{
		Period: periodOf(query, s.options.Now()), Search: query.Get("search"), Policy: query.Get("policy"),
		Trouble: query.Get("trouble") != "", Sort: order.by, Offset: (page - 1) * domainsPerPage, Limit: domainsPerPage,
	}
	if c.wantsCSV("domains") {
		asked.Offset, asked.Limit = 0, maxCSVRows
	}
	found, err := c.team.Domains.Overview(c.r.Context(), asked)
	if err != nil {
		return err
	}
	view := overviewView{
		Overview: found,
		Filter: overviewFilter{
			Search: asked.Search, Policy: asked.Policy, Trouble: asked.Trouble,
			Policies: []Choice{{"", "any policy"}, {"reject", "reject"}, {"quarantine", "quarantine"}, {"none", "none"}, {"missing", "no policy"}, {"unknown", "not known yet"}},
			Kept:     kept(query, "search", "policy", "trouble"),
		},
		Period: periodChoice(path, query, asked.Period, s.options.Now()),
		Chart:  messageChart("messages", countsSentence(found.Counts), found.Days, nil),
		Table:  domainTable(found, query, order),
		Pager:  numberedPager(path, query, page, domainsPerPage, found.Matching),
	}
	if asked.Search != "" || asked.Policy != "" || asked.Trouble {
		view.Filter.Clear = withQuery(path, query, "search", "", "policy", "", "trouble", "", "page", "")
	}
	if found.All == 0 {
		view.Table.Empty = view.Table.Empty.offeredTo(c.viewer.MayEdit())
	}
	view.Chart.CSV = withQuery(path, query, "csv", view.Chart.ID)
	switch {
	case c.wantsCSV("domains"):
		return c.csv(view.Table)
	case c.wantsCSV(view.Chart.ID):
		return c.csv(view.Chart.table())
	}
	return c.render(http.StatusOK, Page{Template: "overview", Title: "Overview", Section: "Overview", Charts: true}, view)
}

func domainTable(found Overview, query url.Values, order sorting) Table {
	t := Table{
		ID: "domains", Caption: "Domains", CSV: withQuery(order.path, query, "csv", "domains", "page", ""),
		Columns: []Column{
			order.column("Domain", "name", false),
			order.column("Grade", "grade", false),
			order.column("Policy", "policy", false),
			order.column("Messages", "messages", true),
			order.column("Compliant", "passing", true),
			{Title: "Trend"},
		},
		Empty: Empty{"No domain matches", "Change or clear the filter above.", Link{"Show all domains", order.path}},
	}
	if found.All == 0 {
		t.Empty = Empty{
			"No domains yet", "Add a domain that sends mail, or one that should not. Its DNS is looked at at once, and a guide shows which record brings its reports here.",
			Link{"Add a domain", Prefix + "/domains/new"},
		}
	}
	t.Columns[0].Wide, t.Columns[0].Note = true, "State"
	for _, d := range found.Domains {
		name := link(d.Name, domainPath(d.Name)).copyable()
		policy := policyCell(d.Policy)
		switch {
		case !d.Known:
			name, policy = name.noted("the DNS has not answered yet"), badge("unknown")
		case !d.Active:
			name = name.noted("reports do not come here yet")
		}
		t.Rows = append(t.Rows, []Cell{
			name, gradeCell(d.Grade).linked(domainPath(d.Name) + "/check"), policy, count(d.Counts.Total()),
			share(d.Counts.Compliant, d.Counts.Total()), spark(d.Trend),
		})
	}
	return t
}

func policyCell(policy string) Cell {
	if policy == "" {
		return Cell{Kind: CellBadge, Text: "no policy", Tone: "bad"}
	}
	return badge(policy)
}

// domainPath is where the pages of a domain begin.
func domainPath(name string) string { return Prefix + "/domains/" + url.PathEscape(name) }

// countsSentence tells what a chart of messages comes to.
func countsSentence(c dmarcd.Counts) string {
	if c.Total() == 0 {
		return "No messages were reported in this time."
	}
	return number(c.Total()) + " messages were reported, of which " + percent(c.Compliant, c.Total()) + " were compliant."
}
