package web

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

type sourceView struct {
	Source insight.Source
	Query  mailQuery
	Period ui.PeriodChoice
	Chart  ui.Chart
	Flow   ui.Chart
	Parts  []ui.Table
	Record ui.Table
	Pager  ui.Pager
	// Assessment is the class of the sender with evidence, nil if unknown; Class is its
	// badge, Classes are the buttons that override it, and ClassForm does so for a part, an
	// address or a network.
	Assessment *insight.Assessment
	Class      ui.Cell
	Classes    []ui.Action
	ClassForm  ui.Form
	// NameForm names the sender, and NameTitle is its title, "" for none.
	NameForm  ui.Form
	NameTitle string
}

func (s *Web) source(c *call) error {
	query := c.r.URL.Query()
	asked := s.sourceQuery(query, query.Get("domain"))
	asked.Group, asked.Key = insight.Group(c.params.Get("group")), c.params.Get("source")
	asked.Search, asked.Failing = "", false // of the list
	if query.Has("csv") {
		asked.After, asked.Limit, asked.Parts = "", maxCSVRows, maxCSVRows
	}
	if plainGroup(asked.Group) == "" {
		return errNoSuchPage
	}
	mail, err := c.mailOf(asked)
	if err != nil {
		return err
	}
	found, err := mail.Source(c.r.Context(), asked.Query)
	if errors.Is(err, dmarcd.ErrNotFound) && asked.Domain != "" && query.Get("done") == classSet {
		// The new class changed which senders there are.
		return c.redirect(c.link(domainPath(asked.Domain)+"/senders", "done", classSet))
	}
	if err != nil {
		return err
	}
	view := sourceView{Query: asked}
	if err := c.addAssessment(&view, mail); err != nil {
		return err
	}
	flows, err := mail.Flows(c.r.Context(), asked.Query)
	if err != nil {
		return err
	}
	records, err := mail.Records(c.r.Context(), asked.Query)
	if err != nil {
		return err
	}
	path := Prefix + "/senders/" + string(asked.Group) + "/" + url.PathEscape(asked.Key)
	view.Source = found
	view.Period = ui.NewPeriodChoice(path, query, asked.Period, s.options.Now())
	var marks []ui.Mark
	reports := Prefix + "/reports"
	if asked.Domain != "" {
		reports = domainPath(asked.Domain) + "/reports"
		if marks, err = c.dnsMarks(asked.Domain, asked.Period); err != nil {
			return err
		}
	}
	view.Chart = messageChart(countsSentence(found.Counts), found.Days, marks)
	view.Chart.LinkDays(reports, carried(query), "kind", string(dmarcd.KindAggregate))
	view.Flow = flowChart(flows, asked, ui.WithQuery(path, query, "csv", "flow"))
	view.Record = c.sentRecordTable(records.Records, ui.WithQuery(path, query, "csv", "records", "after", ""))
	view.Pager = ui.CursorPager(path, query, records.Next)
	view.Chart.CSV = ui.WithQuery(path, query, "csv", "messages")
	view.Parts = partTables(found.Parts, asked, path, query)
	if view.NameForm, view.NameTitle, err = c.nameForm(asked, found); err != nil {
		return err
	}
	page := Page{Template: "source", Title: found.Name, Section: "Senders", Charts: true}
	back := ui.Link{Text: "Senders", Href: ui.WithQuery(Prefix+"/senders", carried(query), "group", string(asked.Group))}
	if asked.Domain != "" {
		back = ui.Link{Text: "Senders of " + asked.Domain, Href: ui.WithQuery(domainPath(asked.Domain)+"/senders", carried(query), "group", string(asked.Group))}
	}
	page.Trail = []ui.Link{back}
	return c.render(http.StatusOK, page, view, append(view.Parts, view.Record, view.Chart.Table(), view.Flow.Table())...)
}

// partTables show the mail of a source in the other groups.
func partTables(parts []insight.Part, asked mailQuery, path string, query url.Values) []ui.Table {
	tables := make([]ui.Table, 0, len(parts))
	for _, part := range parts {
		t := ui.Table{
			ID: string(part.Group), Caption: plainGroup(part.Group), CSV: ui.WithQuery(path, query, "csv", string(part.Group)),
			Columns: []ui.Column{
				{Title: plainGroup(part.Group), Wide: true, Note: "Detail"},
				{Title: "Messages", Numeric: true},
				{Title: "Passes DMARC", Numeric: true},
				{Title: "SPF", Numeric: true},
				{Title: "DKIM", Numeric: true},
			},
			Empty: ui.Empty{Title: "Not reported", Advice: "No report contains this information.", Action: ui.Link{}},
			More:  part.More,
		}
		below := asked
		below.Group = part.Group
		for _, row := range part.Rows {
			total := row.Counts.Total()
			t.Rows = append(t.Rows, []ui.Cell{
				below.cell(row), ui.Count(total), ui.Share(row.Counts.Compliant, total),
				ui.Share(row.Counts.SPF, total), ui.Share(row.Counts.DKIM, total),
			})
		}
		tables = append(tables, t)
	}
	return tables
}
