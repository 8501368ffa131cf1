package web

import (
	"cmp"
	"net/http"
	"net/url"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// reportActions are the buttons of a report that the viewer may use. An unclaimed one is not
// counted, so that it cannot be excluded.
func reportActions(c *call, r dmarcd.Report, path string) []ui.Action {
	if !c.viewer.MayEdit() {
		return nil
	}
	remove := ui.Action{
		Label: "Delete report", Path: path + "/delete", Danger: true,
		Question: "Delete this report and its original? Its messages are no longer counted.",
	}
	if r.Unclaimed && r.State == dmarcd.ReportCounted {
		remove.Question = "Delete this report and its original?"
		return []ui.Action{remove}
	}
	count := ui.Action{Label: "Count this report", Path: path + "/counted", Name: "counted", Value: "true"}
	switch r.State {
	case dmarcd.ReportCounted:
		count = ui.Action{Label: "Exclude from counts", Path: path + "/counted", Name: "counted", Value: "false"}
	case dmarcd.ReportHeld:
		count.Label = "Release and count"
	case dmarcd.ReportReplaced:
		count.Label = "Count this version"
	case dmarcd.ReportExcluded:
	}
	return []ui.Action{count, remove}
}

func (s *Web) setCounted(c *call, id dmarcd.ReportID, form url.Values) error {
	counted, done := form.Get("counted") == "true", "report-excluded"
	if _, err := c.team.SetCounted(c.r.Context(), id, counted); err != nil {
		return err
	}
	if counted {
		done = "report-included"
	}
	return c.done(Prefix+"/reports/"+id.String(), done)
}

const excludePath = Prefix + "/reports/exclude"

type excludeView struct {
	Form ui.Form
	// Preview says which reports the form would change, "" before it is sent; Confirm changes
	// them, nil if there are none.
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
			Hint: "“Include again” includes all excluded reports of the selection, also those that were excluded earlier.",
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
func (s *Web) excludePage(c *call) error {
	return c.showExclude(excludeView{Form: excludeForm(c.r.URL.Query())})
}

func (c *call) showExclude(view excludeView) error {
	return c.render(http.StatusOK, Page{
		Template: "exclude", Title: "Exclude reports", Section: "Reports", Trail: []ui.Link{{Text: "Reports", Href: Prefix + "/reports"}},
	}, view)
}

// exclude shows how many reports are selected and, once that is confirmed, changes them.
func (s *Web) exclude(c *call, written url.Values) error {
	selected, err := selection(written)
	view, counted := excludeView{Form: excludeForm(written)}, written.Get("counted") == "true"
	switch {
	case err != nil:
	case written.Get("confirmed") == "":
		view.Preview, view.Confirm, err = c.previewExclude(selected, counted, view.Form)
	default:
		view.Form = excludeForm(nil)
		view.Changed, err = c.excludeAll(selected, counted)
	}
	if err != nil {
		return again(excludeForm(nil), written, err, func(form ui.Form) error { return c.showExclude(excludeView{Form: form}) })
	}
	return c.showExclude(view)
}

// excludeAll changes all selected reports and returns how many there were.
func (c *call) excludeAll(selected service.Selection, counted bool) (string, error) {
	changed, err := c.team.SetCountedAll(c.r.Context(), selected, counted)
	message := "Excluded from the counts: "
	if counted {
		message = "Counted again: "
	}
	return message + dmarcd.FormatCount(int64(changed), "report") + ".", err
}

// previewExclude describes the change of the selected reports, with the form that confirms it.
func (c *call) previewExclude(selected service.Selection, counted bool, asked ui.Form) (string, *ui.Form, error) {
	of, verb, button, again := cmp.Or(selected.Reporter, "all reporters"), "Excludes ", "Exclude ", ""
	filter := service.ReportFilter{Organization: selected.Reporter, Days: selected.Days, State: dmarcd.ReportCounted}
	if counted {
		verb, button, again, filter.State = "Includes ", "Include ", " again", dmarcd.ReportExcluded
	}
	if selected.Days.From != nil {
		of += " from " + selected.Days.From.String()
	}
	if selected.Days.To != nil {
		of += " to " + selected.Days.To.String()
	}
	number, err := c.countReports(filter)
	if err != nil || number == 0 {
		return "No " + string(filter.State) + " report of " + of + ".", nil, err
	}
	reports := dmarcd.FormatCount(int64(number), "report")
	if number > maxPreviewed {
		reports = "more than " + dmarcd.FormatCount(int64(maxPreviewed), "report")
	}
	confirm := ui.Form{Path: excludePath, Method: "post", Submit: button + reports + again, Fields: []ui.Field{{Name: "confirmed", Type: "hidden", Value: "yes"}}}
	for _, field := range asked.Fields {
		if field.Type != "checkbox" || field.Checked {
			confirm.Fields = append(confirm.Fields, ui.Field{Name: field.Name, Type: "hidden", Value: field.Value})
		}
	}
	return verb + reports + " of " + of + again + ".", &confirm, nil
}

// maxPreviewed is the number up to which selected reports are counted.
const maxPreviewed = 10_000

// countReports returns the number of reports, at most a step more than maxPreviewed.
func (c *call) countReports(filter service.ReportFilter) (number int, err error) {
	const step = 1000
	for before := dmarcd.ReportID(0); number <= maxPreviewed; {
		found, err := c.team.Reports(c.r.Context(), filter, before, step)
		number += len(found)
		if err != nil || len(found) < step {
			return number, err
		}
		before = found[len(found)-1].ID
	}
	return number, nil
}

// selection parses the form. All reports at once are never selected by leaving fields empty.
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
