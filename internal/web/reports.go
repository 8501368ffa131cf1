package web

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

const reportsPerPage = 50

// reportQuery selects a part of the list of reports.
type reportQuery struct {
	service.ReportFilter
	Period Period
	After  string
	Limit  int
}

func (c *call) reportList(query reportQuery) (wire.Page[dmarcd.Report], error) {
	var page wire.Page[dmarcd.Report]
	after, err := parseCursor(query.After)
	if err != nil {
		return page, err
	}
	query.Days = query.Period.days()
	found, err := c.team.Reports(c.r.Context(), query.ReportFilter, dmarcd.ReportID(after.ID), query.Limit+1)
	if err != nil {
		return page, err
	}
	return wire.NewPage(found, query.Limit, func(report dmarcd.Report) string {
		return wire.FormatCursor(report.ReceivedAt, int64(report.ID))
	}, asItIs)
}

type reportsView struct {
	Query   reportQuery
	Filter  Form
	Table   Table
	Pager   Pager
	MayEdit bool
	// Exclude leads to the form that excludes the listed reports.
	Exclude string
}

func (s *Web) reportQuery(query url.Values, domain string) reportQuery {
	q := reportQuery{
		ReportFilter: service.ReportFilter{
			Domain: normalDomain(domain), Organization: query.Get("organization"), ExternalID: query.Get("id"), Quirks: query.Get("quirks") != "",
		},
		Period: periodOf(query, s.options.Now()), After: query.Get("after"), Limit: reportsPerPage,
	}
	for _, kind := range dmarcd.ReportKinds() {
		if query.Get("kind") == string(kind) {
			q.Kind = kind
		}
	}
	if state := dmarcd.ReportState(query.Get("state")); slices.Contains(dmarcd.ReportStates(), state) {
		q.State = state
	}
	switch genuine := dmarcd.Genuine(query.Get("genuine")); genuine {
	case dmarcd.GenuineYes, dmarcd.GenuineNo, dmarcd.GenuineUnknown:
		q.Genuine = genuine
	}
	return q
}

// normalDomain returns a domain of a filter as it is stored. What is not a domain name
// stays as it is, and matches nothing.
func normalDomain(written string) string {
	if name, err := dmarcd.ParseName(written); err == nil {
		return name
	}
	return written
}

func (s *Web) reports(c *call) error {
	const path = Prefix + "/reports"
	query := c.r.URL.Query()
	view, err := s.loadReports(c, path, s.reportQuery(query, query.Get("domain")))
	if err != nil {
		return err
	}
	if c.wantsCSV("reports") {
		return c.csv(view.Table)
	}
	return c.render(http.StatusOK, Page{Template: "reports", Title: "Reports", Section: "Reports"}, view)
}

type domainReportsView struct {
	domainView
	reportsView
}

func (s *Web) domainReports(c *call) error {
	title := "Reports"
	switch dmarcd.ReportKind(c.r.URL.Query().Get("kind")) {
	case dmarcd.KindFailure:
		title = "Failure reports"
	case dmarcd.KindTLS:
		title = "TLS reports"
	}
	page, head, err := s.domainPage(c, "domainreports", title)
	if err != nil {
		return err
	}
	path := domainPath(head.Head.Name) + "/reports"
	view, err := s.loadReports(c, path, s.reportQuery(c.r.URL.Query(), head.Head.Name))
	if err != nil {
		return err
	}
	if c.wantsCSV("reports") {
		return c.csv(view.Table)
	}
	return c.render(http.StatusOK, page, domainReportsView{head, view})
}

func (s *Web) loadReports(c *call, path string, asked reportQuery) (reportsView, error) {
	query := c.r.URL.Query()
	if c.wantsCSV("reports") {
		asked.After, asked.Limit = "", maxCSVRows
	}
	found, err := c.reportList(asked)
	if err != nil {
		return reportsView{}, err
	}
	view := reportsView{
		Query: asked, Filter: reportFilter(path, asked), MayEdit: c.viewer.MayEdit(),
		Table: reportTable(found.Items, withQuery(path, query, "csv", "reports", "after", "")),
		Pager: cursorPager(path, query, next(found)),
	}
	view.Exclude = withQuery(excludePath, url.Values{}, "reporter", asked.Organization, "from", asked.Period.From.String(), "to", asked.Period.To.String())
	view.Table.Empty = asked.nothing(path)
	if view.Table.Empty.Action.Href == uploadPath {
		view.Table.Empty = view.Table.Empty.offeredTo(view.MayEdit)
	}
	if path != Prefix+"/reports" {
		view.Table = view.Table.without("Domain")
	}
	return view, nil
}

// nothing says why there may be no report, and what to do about it.
func (q reportQuery) nothing(path string) Empty {
	switch {
	case q.Organization != "" || q.ExternalID != "" || q.Domain != "" && path == Prefix+"/reports":
		return Empty{"No report matches", "Names and ids have to be written whole. Change the filter, or choose more days.", Link{"Show all reports", path}}
	case q.Domain != "":
		return Empty{"No reports", "None came in these days. Choose more, or see in the set-up guide which record asks for them.", Link{"Set-up guide", domainPath(q.Domain) + "/setup"}}
	}
	return Empty{"No reports", "None came in these days. Choose more, upload one, or see the set-up guide of a domain.", Link{"Upload a report", uploadPath}}
}

// reportFilter is the form that narrows the list.
func reportFilter(path string, asked reportQuery) Form {
	fields := []Field{
		{Name: "kind", Label: "Kind", Type: "select", Value: string(asked.Kind), Choices: append([]Choice{{"", "any"}}, choices(dmarcd.ReportKinds()...)...)},
	}
	if path == Prefix+"/reports" {
		fields = append(fields, Field{Name: "domain", Label: "Domain", Type: "search", Value: asked.Domain, Placeholder: "example.com"})
	}
	return Form{Path: path, Method: "get", Submit: "Filter", Inline: true, Fields: append(
		fields,
		Field{Name: "organization", Label: "Reporter", Type: "search", Value: asked.Organization, Placeholder: "the whole name"},
		Field{Name: "id", Label: "Report id", Type: "search", Value: asked.ExternalID, Placeholder: "the whole id"},
		Field{Name: "genuine", Label: "Genuine", Type: "select", Value: string(asked.Genuine), Choices: []Choice{{"", "any"}, {"yes", "yes"}, {"no", "no"}, {"unknown", "unknown"}}},
		Field{Name: "state", Label: "State", Type: "select", Value: string(asked.State), Choices: append([]Choice{{"", "any"}}, choices(dmarcd.ReportStates()...)...)},
		Field{Name: "from", Label: "From", Type: "date", Value: asked.Period.From.String()},
		Field{Name: "to", Label: "To", Type: "date", Value: asked.Period.To.String()},
		Field{Name: "quirks", Label: "with quirks only", Type: "checkbox", Checked: asked.Quirks},
	)}
}

func reportTable(reports []dmarcd.Report, csv string) Table {
	t := Table{
		ID: "reports", Caption: "Reports", CSV: csv,
		Columns: []Column{
			{Title: "Received"},
			{Title: "Kind"},
			{Title: "Reporter", Wide: true, Note: "Report id"},
			{Title: "Domain", Wide: true},
			{Title: "Day (UTC)"},
			{Title: "Records", Numeric: true},
			{Title: "Messages", Numeric: true},
			{Title: "Compliant", Numeric: true},
			{Title: "Genuine", Note: "State"},
			{Title: "Quirks", Numeric: true},
		},
	}
	for _, r := range reports {
		genuine := badge(string(orGenuine(r.Verdict.Genuine)))
		if r.State != dmarcd.ReportCounted {
			genuine = genuine.noted(string(r.State) + ", not counted")
		}
		t.Rows = append(t.Rows, []Cell{
			at(r.ReceivedAt).linked(Prefix + "/reports/" + r.ID.String()), text(string(r.Kind)), text(r.Organization).noted(r.ExternalID),
			text(r.Domain), text(dmarcd.DayOf(r.Begin).String()), count(int64(r.Records)), count(r.Messages), share(r.Compliant, r.Messages),
			genuine, count(int64(len(r.Quirks))),
		})
	}
	return t
}

func orGenuine(g dmarcd.Genuine) dmarcd.Genuine {
	if g == "" {
		return dmarcd.GenuineUnknown
	}
	return g
}
