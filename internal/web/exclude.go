package web

import (
	"cmp"
	"net/http"
	"net/url"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

const excludePath = Prefix + "/reports/exclude"

type excludeView struct {
	Form ui.Form
	// Preview describes the reports that the form would change, "" before it is sent. Confirm is
	// the form that changes them, nil if no report is selected.
	Preview string
	Confirm *ui.Form
	// Changed is the number of changed reports as text, "" before they are changed.
	Changed string
}

// excludeForm is filled with the values of a query or of the form itself.
func excludeForm(values url.Values) ui.Form {
	form := ui.Form{Path: excludePath, Method: "post", Submit: "Preview", Fields: []ui.Field{
		{Name: "reporter", Label: "Reporter", Type: "text", Placeholder: "receiver.example", Hint: "The full name, upper or lower case."},
		{Name: "all", Label: "all reporters", Type: "checkbox"},
		{Name: "from", Label: "First day (UTC)", Type: "date"},
		{Name: "to", Label: "Last day (UTC)", Type: "date"},
		{
			Name: "counted", Label: "Action", Type: "select", Value: "false", Choices: []ui.Choice{{Value: "false", Label: "Exclude"}, {Value: "true", Label: "Include again"}},
			Hint: "“Include again” counts all excluded reports that match, including those excluded earlier.",
		},
	}}
	for i, field := range form.Fields {
		if value := values.Get(field.Name); value != "" {
			form.Fields[i].Value, form.Fields[i].Checked = value, true
		}
	}
	return form
}

// excludePage shows the form, prefilled with the filter of the list.
func (s *Web) excludePage(c *site.Call) error {
	return showExclude(c, http.StatusOK, excludeView{Form: excludeForm(c.R.URL.Query())})
}

func showExclude(c *site.Call, status int, view excludeView) error {
	return c.Render(status, site.Page{
		Template: "exclude", Title: "Exclude reports", Section: "Reports", Trail: []ui.Link{{Text: "Reports", Href: Prefix + "/reports"}},
	}, view)
}

// exclude shows how many reports are selected and, once that is confirmed, changes them.
func (s *Web) exclude(c *site.Call, written url.Values) error {
	selected, err := selection(written)
	view, counted := excludeView{Form: excludeForm(written)}, written.Get("counted") == "true"
	switch {
	case err != nil:
	case written.Get("confirmed") == "":
		view.Preview, view.Confirm, err = previewExclude(c, selected, counted, view.Form)
	default:
		view.Form = excludeForm(nil)
		view.Changed, err = excludeAll(c, selected, counted)
	}
	if err != nil {
		return site.Again(excludeForm(nil), written, err, func(form ui.Form) error {
			return showExclude(c, http.StatusUnprocessableEntity, excludeView{Form: form})
		})
	}
	return showExclude(c, http.StatusOK, view)
}

// excludeAll changes all selected reports and returns how many there were.
func excludeAll(c *site.Call, selected service.Selection, counted bool) (string, error) {
	changed, err := c.Team.SetCountedAll(c.R.Context(), selected, counted)
	message := "Excluded from the counts: "
	if counted {
		message = "Counted again: "
	}
	return message + phrase.Count(int64(changed), "report") + ".", err
}

// previewExclude describes the change of the selected reports, with the form that confirms it.
func previewExclude(c *site.Call, selected service.Selection, counted bool, asked ui.Form) (string, *ui.Form, error) {
	of, verb, button, again := cmp.Or(selected.Reporter, "all reporters"), "Excludes ", "Exclude ", ""
	filter := service.ReportFilter{Organization: selected.Reporter, Days: selected.Days, State: dmarcd.ReportCounted}
	if counted {
		verb, button, again, filter.State = "Includes ", "Include ", " again", dmarcd.ReportExcluded
	}
	if selected.Days.From != nil {
		of += " from " + phrase.Day(*selected.Days.From)
	}
	if selected.Days.To != nil {
		of += " to " + phrase.Day(*selected.Days.To)
	}
	number, err := countReports(c, filter)
	if err != nil || number == 0 {
		return "No " + string(filter.State) + " report of " + of + ".", nil, err
	}
	reports := phrase.Count(int64(number), "report")
	if number > maxPreviewed {
		reports = "more than " + phrase.Count(int64(maxPreviewed), "report")
	}
	confirm := ui.Form{Path: excludePath, Method: "post", Submit: button + reports + again, Fields: []ui.Field{{Name: "confirmed", Type: "hidden", Value: "yes"}}}
	for _, field := range asked.Fields {
		if field.Type != "checkbox" || field.Checked {
			confirm.Fields = append(confirm.Fields, ui.Field{Name: field.Name, Type: "hidden", Value: field.Value})
		}
	}
	return verb + reports + " of " + of + again + ".", &confirm, nil
}

// maxPreviewed limits the count of selected reports in a preview.
const maxPreviewed = 10_000

// countReports returns the number of reports. It stops counting above maxPreviewed.
func countReports(c *site.Call, filter service.ReportFilter) (number int, err error) {
	const step = 1000
	for before := dmarcd.ReportID(0); number <= maxPreviewed; {
		found, err := c.Team.Reports(c.R.Context(), filter, before, step)
		number += len(found)
		if err != nil || len(found) < step {
			return number, err
		}
		before = found[len(found)-1].ID
	}
	return number, nil
}

// selection parses the form. Empty fields never select all reports.
func selection(written url.Values) (service.Selection, error) {
	selected := service.Selection{Reporter: written.Get("reporter")}
	for _, end := range []struct {
		name string
		day  **dmarcd.Day
	}{{"from", &selected.Days.From}, {"to", &selected.Days.To}} {
		text := written.Get(end.name)
		if text == "" {
			continue
		}
		day, err := dmarcd.ParseDay(text)
		if err != nil {
			return selected, &dmarcd.InvalidError{Field: end.name, Message: "Enter a day such as 2026-11-15."}
		}
		*end.day = &day
	}
	switch all := written.Get("all") != ""; {
	case selected.Reporter == "" && !all:
		return selected, &dmarcd.InvalidError{Field: "reporter", Message: "Enter a reporter, or select “all reporters”."}
	case selected == (service.Selection{}):
		return selected, &dmarcd.InvalidError{Field: "from", Message: "Enter the first day, the last day, or both."}
	}
	return selected, nil
}
