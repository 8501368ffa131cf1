package web

import (
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// printedView is a one-page report for readers who do not use dmarcd.
type printedView struct {
	// Subject is the domain or team.
	Subject string
	Period  ui.Period
	// Advice is the conclusion about a domain, nil in a team report; Actions are the next
	// actions of a team's domains.
	Advice         *adviceView
	Actions        []adviceView
	Counts, Before dmarcd.Counts
	Classes        []classCount
	Chart          ui.Chart
	Senders        ui.Table
}

func printedFrame(subject string) Page {
	return Page{Template: "printed", Title: "Report about " + subject, Section: "Overview"}
}

// printedDomain renders the report about a domain.
func (s *Web) printedDomain(c *call) error {
	domain, err := c.team.Domain(c.r.Context(), c.params.Get("domain"))
	if err != nil {
		return err
	}
	period := ui.PeriodOf(c.r.URL.Query(), s.options.Now())
	found, err := c.timeline(domain.Name, period)
	if err != nil {
		return err
	}
	advice, err := c.team.Advice(c.r.Context(), domain.Name)
	if err != nil {
		return err
	}
	senders, err := c.senders(domain.Name, period)
	if err != nil {
		return err
	}
	shown := c.adviceView(&advice)
	for i := range shown.Way { // paper has no buttons
		shown.Way[i].Buttons, shown.Way[i].Links = nil, nil
	}
	// Evidence and causes do not fit on the page.
	top := topSenderTable(senders, printedSenders, s.sourceQuery(c.r.URL.Query(), domain.Name)).Without("Cause")
	for _, row := range top.Rows {
		row[1].Note = ""
	}
	top.CSV = c.link(domainPath(domain.Name), "csv", "senders")
	return c.render(http.StatusOK, printedFrame(domain.Name), printedView{
		Subject: domain.Name, Period: period, Advice: &shown, Counts: found.Counts, Before: found.Before,
		Classes: countClasses(senders, domain.Name, nil), Senders: top,
		Chart: messageChart(countsSentence(found.Counts), found.Days, found.Marks),
	})
}

// printedTeam renders the report about all domains of the team.
func (s *Web) printedTeam(c *call) error {
	period := ui.PeriodOf(c.r.URL.Query(), s.options.Now())
	found, err := c.teamSeries(period)
	if err != nil {
		return err
	}
	view := printedView{Subject: c.viewer.Team.Name, Period: period, Counts: found.Counts, Before: found.Before}
	view.Chart = messageChart(countsSentence(found.Counts), found.Days, nil)
	all, err := c.team.TopAdvice(c.r.Context())
	if err != nil {
		return err
	}
	for i := range all {
		view.Actions = append(view.Actions, c.adviceView(&all[i]))
	}
	return c.render(http.StatusOK, printedFrame(view.Subject), view)
}
