package web

import (
	"mime"
	"net/http"
	"net/url"
	"strconv"

	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// printedView is the report for managers.
type printedView struct {
	*service.ManagerSummary
	Choice ui.PeriodChoice
	// Chart is shown if there is mail.
	Chart ui.Chart
	Table ui.Table
	// PDF is the report as a file.
	PDF string
}

// printedDomain renders the report about a domain.
func (s *Web) printedDomain(c *site.Call) error {
	domain, err := c.Team.Domain(c.R.Context(), c.Params.Get("domain"))
	if err != nil {
		return err
	}
	return s.printed(c, domain.Name, domainPath(domain.Name)+"/print")
}

// printedTeam renders the report about all domains of the team.
func (s *Web) printedTeam(c *site.Call) error { return s.printed(c, "", printPath) }

const printPath = Prefix + "/print"

func (s *Web) printed(c *site.Call, domain, path string) error {
	view, err := s.loadPrinted(c, domain, path)
	if err != nil {
		return err
	}
	if c.R.URL.Query().Get("format") == "pdf" {
		return sendPDF(c, view.ManagerSummary)
	}
	return c.Render(http.StatusOK, printedFrame(view), view, view.Table)
}

func printedFrame(view printedView) site.Page {
	return site.Page{Template: "print", Title: view.Heading(), Section: "Overview"}
}

func (s *Web) loadPrinted(c *site.Call, domain, path string) (printedView, error) {
	query := c.R.URL.Query()
	period := ui.PeriodOf(query, s.options.Now())
	found, err := c.Team.ManagerSummary(c.R.Context(), domain, period.From, period.To)
	if err != nil {
		return printedView{}, err
	}
	return printedView{
		ManagerSummary: &found, Choice: ui.NewPeriodChoice(path, query, period, s.options.Now()),
		Chart: summaryChart(&found), Table: summaryTable(c, &found, path, query), PDF: ui.WithQuery(path, query, "format", "pdf"),
	}, nil
}

// sendPDF sends the report as a file.
func sendPDF(c *site.Call, found *service.ManagerSummary) error {
	file, err := c.Team.SummaryPDF(c.R.Context(), *found)
	if err != nil {
		return err
	}
	h := c.W.Header()
	h.Set("Content-Type", "application/pdf")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": found.FileName()}))
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(file)))
	if c.R.Method == http.MethodHead {
		return nil
	}
	_, _ = c.W.Write(file) // the client notices a short file by its length
	return nil
}

func summaryChart(s *service.ManagerSummary) ui.Chart {
	chart := ui.Chart{
		Kind: "days", ID: "messages", Title: "Messages",
		Labels: service.SummarySeries(), Tones: []string{"good", "bad", "forwarded", "spoofed", "warning"},
	}
	total := s.Total.Mail.All()
	if total.Total() == 0 {
		return chart.PerDay()
	}
	for _, day := range s.Days {
		chart.Days = append(chart.Days, ui.ChartDay{Day: day.Day, Values: service.ChartValues(day.ClassCounts)})
	}
	return chart.PerDay()
}

// protectionTones are the colors of protections.
var protectionTones = map[service.Protection]string{
	service.Protected: "good", service.PartlyProtected: "warning", service.Unprotected: "bad", service.UnknownYet: "info",
}

func summaryTable(c *site.Call, s *service.ManagerSummary, path string, query url.Values) ui.Table {
	t := ui.Table{ID: "domains", Caption: "Domains", CSV: ui.WithQuery(path, query, "csv", "domains")}
	for i, title := range service.SummaryColumns() {
		t.Columns = append(t.Columns, ui.Column{Title: title, Numeric: i > 3, Wide: i == 0})
	}
	for _, r := range s.All() {
		name, grade := ui.Text(r.Title()), ui.Text(r.GradeText())
		if r.Name != "" {
			name = ui.LinkTo(r.Name, c.Link(domainPath(r.Name)))
		}
		if r.Grade != "" {
			grade = ui.Grade(r.Grade)
		}
		t.Rows = append(t.Rows, []ui.Cell{
			name, grade, ui.Text(r.PolicyText()),
			{Kind: ui.CellBadge, Text: string(r.Protection), Tone: protectionTones[r.Protection]},
			ui.Figure(r.Share()), ui.Figure(r.BlockedText()), ui.Figure(r.Change()),
		})
	}
	t.Empty = ui.Empty{Title: "No domains", Advice: "Add the domains of your company to see how well they are protected.", Action: ui.Link{Text: "Add a domain", Href: Prefix + "/domains/new"}}
	return t
}
