package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
	"github.com/dmarcd/dmarcd/internal/wire"
)

const reportsPerPage = 50

// reportQuery selects a page of the list of reports.
type reportQuery struct {
	service.ReportFilter
	Period ui.Period
	After  string
	Limit  int
}

func reportList(c *site.Call, query reportQuery) (wire.Page[dmarcd.Report], error) {
	query.Days = query.Period.Days()
	return pages(query.Limit, func(before service.Cursor, limit int) ([]dmarcd.Report, error) {
		return c.Team.Reports(c.R.Context(), query.ReportFilter, dmarcd.ReportID(before.ID), limit)
	}, func(r dmarcd.Report) (time.Time, int64) { return r.ReceivedAt, int64(r.ID) })(query.After)
}

type reportsView struct {
	Query  reportQuery
	Filter ui.Form
	Table  ui.Table
	Pager  ui.Pager
	// Exclude is the form that excludes the listed reports.
	Exclude string
}

func (s *Web) reportQuery(query url.Values, domain string) reportQuery {
	q := reportQuery{
		ReportFilter: service.ReportFilter{
			Domain: normalDomain(domain), OrganizationPart: query.Get("organization"), ExternalIDPart: query.Get("id"), Quirks: query.Get("quirks") != "",
		},
		Period: ui.PeriodOf(query, s.options.Now()), After: query.Get("after"), Limit: reportsPerPage,
	}
	for _, kind := range dmarcd.ReportKinds() {
		if query.Get("kind") == string(kind) {
			q.Kind = kind
		}
	}
	if state := dmarcd.ReportState(query.Get("state")); slices.Contains(dmarcd.ReportStates(), state) {
		q.State = state
	}
	q.Unclaimed = query.Get("state") == stateUnclaimed
	switch genuine := dmarcd.Genuine(query.Get("genuine")); genuine {
	case dmarcd.GenuineYes, dmarcd.GenuineNo, dmarcd.GenuineUnknown:
		q.Genuine = genuine
	}
	return q
}

// normalDomain normalizes a domain of a filter. An invalid name is returned unchanged and
// matches nothing.
func normalDomain(written string) string {
	if name, err := dmarcd.ParseName(written); err == nil {
		return name
	}
	return written
}

func (s *Web) reports(c *site.Call) error {
	const path = Prefix + "/reports"
	query := c.R.URL.Query()
	view, err := s.loadReports(c, path, s.reportQuery(query, query.Get("domain")))
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, site.Page{Template: "reports", Title: "Reports", Section: "Reports"}, view, view.Table)
}

type domainReportsView struct {
	domainView
	reportsView
	// TLS is the trend of TLS sessions, empty if the list has no TLS reports.
	TLS ui.Chart
}

func (s *Web) domainReports(c *site.Call) error {
	page, head, err := s.domainPage(c, "domain_reports", "Reports")
	if err != nil {
		return err
	}
	path := domainPath(head.Head.Name) + "/reports"
	view, err := s.loadReports(c, path, s.reportQuery(c.R.URL.Query(), head.Head.Name))
	if err != nil {
		return err
	}
	trend, err := tlsChart(c, head.Head.Name, view.Query)
	if err != nil {
		return err
	}
	page.Charts = len(trend.Days) > 0
	return c.Render(http.StatusOK, page, domainReportsView{head, view, trend}, view.Table, trend.Table())
}

// tlsChart shows the TLS sessions by day, if the list may have TLS reports.
func tlsChart(c *site.Call, domain string, asked reportQuery) (ui.Chart, error) {
	chart := ui.Chart{
		Kind: "days", ID: "sessions", Title: "TLS sessions per day", CSV: ui.WithQuery(domainPath(domain)+"/reports", c.R.URL.Query(), "csv", "sessions"),
		Labels: []string{"Day (UTC)", "Encrypted as required", "Failed"}, Tones: []string{"good", "bad"},
	}
	if asked.Kind != dmarcd.KindTLS && asked.Kind != "" {
		return chart, nil
	}
	counted, err := c.Team.TLSDaily(c.R.Context(), domain, asked.Period.Days())
	if err != nil || len(counted) == 0 {
		return chart, err
	}
	found := service.NewSeries(counted, asked.Period.From, asked.Period.To)
	sum := found.Counts
	chart.Summary = phrase.Number(sum.Total()) + " sessions were reported, of which " + phrase.Percent(sum.Compliant, sum.Total()) + " were encrypted as required."
	for _, d := range found.Days {
		chart.Days = append(chart.Days, ui.ChartDay{Day: d.Day, Values: []int64{d.Compliant, d.NonCompliant}})
	}
	chart.LinkDays(domainPath(domain)+"/reports", site.Carried(c.R.URL.Query()), "kind", string(dmarcd.KindTLS))
	return chart, nil
}

func (s *Web) loadReports(c *site.Call, path string, asked reportQuery) (reportsView, error) {
	query := c.R.URL.Query()
	if c.WantsCSV("reports") {
		asked.After, asked.Limit = "", maxCSVRows
	}
	found, err := reportList(c, asked)
	if err != nil {
		return reportsView{}, err
	}
	var tags tagChoice
	if path == Prefix+"/reports" {
		if tags, err = newTagChoice(c); err != nil {
			return reportsView{}, err
		}
	}
	view := reportsView{
		Query: asked, Filter: c.Carrying(reportFilter(path, asked, tags)),
		Table: reportTable(c, asked.Kind, found.Items, ui.WithQuery(path, query, "csv", "reports", "after", "")),
		Pager: ui.CursorPager(path, query, next(found)),
	}
	view.Exclude = ui.WithQuery(excludePath, url.Values{}, "reporter", asked.reporter(found.Items), "from", asked.Period.From.String(), "to", asked.Period.To.String())
	view.Table.Empty = asked.nothing(path, c)
	if view.Table.Empty.Action.Href == uploadPath {
		view.Table.Empty = view.Table.Empty.OfferedTo(c.Viewer.MayEdit())
	}
	if path != Prefix+"/reports" {
		view.Table = view.Table.Without("Domain")
	}
	quirky := func(r dmarcd.Report) bool { return len(r.Quirks) > 0 }
	if !c.WantsCSV("reports") && !slices.ContainsFunc(found.Items, quirky) {
		view.Table = view.Table.Without("Deviations")
	}
	return view, nil
}

// reporter returns the full name of the reporter if all found reports are from one, and the
// text of the filter otherwise, which selects no report to exclude.
func (q reportQuery) reporter(found []dmarcd.Report) string {
	if q.OrganizationPart == "" || len(found) == 0 {
		return q.OrganizationPart
	}
	name := found[0].Organization
	if slices.ContainsFunc(found, func(r dmarcd.Report) bool { return !strings.EqualFold(r.Organization, name) }) {
		return q.OrganizationPart
	}
	return name
}

// nothing explains why the list is empty, and what to do.
func (q reportQuery) nothing(path string, c *site.Call) ui.Empty {
	switch {
	case q.OrganizationPart != "" || q.ExternalIDPart != "" || q.Kind != "" || q.State != "" || q.Unclaimed || q.Genuine != "" || q.Quirks || q.Domain != "" && path == Prefix+"/reports":
		return ui.Empty{Title: "No report matches", Advice: "Change the filter, or choose a longer period.", Action: ui.Link{Text: "Show all reports", Href: c.Link(path)}}
	case q.Domain != "":
		return ui.Empty{Title: "No reports", Advice: "No report was received for these days. Choose a longer period, or check the setup guide.", Action: ui.Link{Text: "Setup guide", Href: c.Link(domainPath(q.Domain) + "/setup")}}
	}
	return ui.Empty{Title: "No reports", Advice: "No report was received for these days. Choose a longer period, or upload a report.", Action: ui.Link{Text: "Upload a report", Href: uploadPath}}
}

// reportKindWord is the word for a kind of report.
func reportKindWord(kind dmarcd.ReportKind) string {
	if kind == dmarcd.KindTLS {
		return "TLS"
	}
	return string(kind)
}

func reportKindChoices() []ui.Choice {
	choices := []ui.Choice{{Value: "", Label: "any"}}
	for _, kind := range dmarcd.ReportKinds() {
		choices = append(choices, ui.Choice{Value: string(kind), Label: reportKindWord(kind)})
	}
	return choices
}

// reportFilter is the form that filters the list.
func reportFilter(path string, asked reportQuery, tags tagChoice) ui.Form {
	fields := []ui.Field{
		{Name: "kind", Label: "Kind", Type: "select", Value: string(asked.Kind), Choices: reportKindChoices()},
	}
	if path == Prefix+"/reports" {
		fields = append(fields, ui.Field{Name: "domain", Label: "Domain", Type: "search", Value: asked.Domain, Placeholder: "example.com"})
	}
	fields = append(append(fields, tags.fields()...),
		ui.Field{Name: "from", Label: "From", Type: "date", Value: asked.Period.From.String()},
		ui.Field{Name: "to", Label: "To", Type: "date", Value: asked.Period.To.String()},
	)
	state, states := string(asked.State), append([]ui.Choice{{Value: "", Label: "any"}}, ui.Choices(dmarcd.ReportStates()...)...)
	if asked.Unclaimed {
		state = stateUnclaimed
	}
	if path == Prefix+"/reports" { // the reports of a domain are claimed
		states = append(states, ui.Choice{Value: stateUnclaimed, Label: "of no domain of the team"})
	}
	return ui.Form{Path: path, Method: "get", Submit: "Filter", Inline: true, Fields: append(
		fields,
		ui.Field{Name: "organization", Label: "Reporter", Type: "search", Value: asked.OrganizationPart, Placeholder: "part of the name"},
		ui.Field{Name: "id", Label: "Report id", Type: "search", Value: asked.ExternalIDPart, Placeholder: "part of the id"},
		ui.Field{Name: "genuine", Label: "Sender verified", Type: "select", Value: string(asked.Genuine), Choices: []ui.Choice{{Value: "", Label: "any"}, {Value: "yes", Label: "verified"}, {Value: "no", Label: "not verified"}, {Value: "unknown", Label: "unknown"}}},
		ui.Field{Name: "state", Label: "State", Type: "select", Value: state, Choices: states},
		ui.Field{Name: "quirks", Label: "only reports that deviate from the format", Type: "checkbox", Checked: asked.Quirks},
	)}
}

// stateUnclaimed is in the filter beside the states of reports.
const stateUnclaimed = string(dmarcd.Unclaimed)

// verifiedCell says whether the mail of a report is from its reporter.
func verifiedCell(genuine dmarcd.Genuine) ui.Cell {
	switch genuine {
	case dmarcd.GenuineYes:
		return ui.Cell{Kind: ui.CellBadge, Text: "verified", Tone: "good"}
	case dmarcd.GenuineNo:
		return ui.Cell{Kind: ui.CellBadge, Text: "not verified", Tone: "bad"}
	}
	return ui.Cell{Kind: ui.CellBadge, Text: "unknown", Tone: "info"}
}

// arrival says how a report came in.
func arrival(intake dmarcd.Intake) string {
	switch intake {
	case dmarcd.IntakeSMTP:
		return "by email"
	case dmarcd.IntakeIMAP:
		return "from a mailbox"
	case dmarcd.IntakeUpload:
		return "uploaded"
	case dmarcd.IntakeImport:
		return "imported"
	}
	return "by " + string(intake)
}

// reportTable lists reports of a kind, or of all kinds. TLS reports count sessions.
func reportTable(c *site.Call, kind dmarcd.ReportKind, reports []dmarcd.Report, csv string) ui.Table {
	counted := ui.Column{Title: "Messages", Numeric: true}
	switch kind {
	case dmarcd.KindTLS:
		counted.Title = "Sessions"
	case "":
		counted.Note = "Unit"
	}
	t := ui.Table{
		ID: "reports", Caption: "Reports", CSV: csv,
		Columns: []ui.Column{
			{Title: "Reporter", Wide: true, Note: "Report id"},
			{Title: "Kind"},
			{Title: "Domain", Wide: true},
			{Title: "Day (UTC)"},
			{Title: "Records", Numeric: true},
			counted,
			{Title: "Pass rate", Numeric: true},
			{Title: "Sender verified", Note: "State"},
			{Title: "Deviations", Numeric: true},
			{Title: "Received"},
		},
	}
	for _, r := range reports {
		genuine := verifiedCell(r.Authentication.Genuine)
		switch {
		case r.State != dmarcd.ReportCounted:
			genuine = genuine.Noted("Not counted: " + string(r.State))
		case r.Unclaimed:
			genuine = genuine.Noted("Not counted: no domain of the team")
		}
		count := ui.Count(r.Messages)
		if kind == "" && r.Kind == dmarcd.KindTLS {
			count = count.Noted("sessions")
		}
		t.Rows = append(t.Rows, []ui.Cell{
			ui.LinkTo(cmp.Or(r.Organization, "not named"), c.Link(Prefix+"/reports/"+r.ID.String(), "domain", c.Params.Get("domain"))).Noted(r.ExternalID), ui.Text(reportKindWord(r.Kind)),
			ui.Text(r.Domain), ui.OnDay(dmarcd.DayOf(r.Begin)), ui.Count(int64(r.Records)), count, ui.Percent(r.Compliant, r.Messages),
			genuine, ui.Count(int64(len(r.Quirks))), ui.At(r.ReceivedAt),
		})
	}
	return t
}
