package web

import (
	"net/http"
	"net/url"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// verdictActions are the buttons of a report that the viewer may use.
func verdictActions(c *call, r dmarcd.Report, path string) []ui.Action {
	if !c.viewer.MayEdit() {
		return nil
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
	return []ui.Action{count, {
		Label: "Delete report", Path: path + "/delete", Danger: true,
		Question: "Delete this report and its original? Its messages are no longer counted.",
	}}
}

func (s *Web) setCounted(c *call, form url.Values) error {
	id, err := pathID(c, dmarcd.ParseReportID)
	if err != nil {
		return err
	}
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
	// Changed is the number of changed reports as text, "" before the form is sent.
	Changed string
}

func excludeForm() ui.Form {
	return ui.Form{Path: excludePath, Method: "post", Submit: "Apply", Fields: []ui.Field{
		{Name: "reporter", Label: "Reporter", Type: "text", Placeholder: "receiver.example", Hint: "The full name, upper or lower case. Leave empty for all reporters."},
		{Name: "from", Label: "First day (UTC)", Type: "date"},
		{Name: "to", Label: "Last day (UTC)", Type: "date"},
		{Name: "counted", Label: "Action", Type: "select", Value: "false", Choices: []ui.Choice{{Value: "false", Label: "Exclude"}, {Value: "true", Label: "Include again"}}},
	}}
}

// excludePage shows the form, prefilled with the filter of the list.
func (s *Web) excludePage(c *call) error {
	form, query := excludeForm(), c.r.URL.Query()
	for i, field := range form.Fields {
		if value := query.Get(field.Name); value != "" {
			form.Fields[i].Value = value
		}
	}
	return c.showExclude(excludeView{Form: form})
}

func (c *call) showExclude(view excludeView) error {
	return c.render(http.StatusOK, Page{
		Template: "exclude", Title: "Exclude reports", Section: "Reports", Trail: []ui.Link{{Text: "Reports", Href: Prefix + "/reports"}},
	}, view)
}

// exclude changes all selected reports, and shows their number.
func (s *Web) exclude(c *call, written url.Values) error {
	selected, err := selection(written)
	changed, counted := 0, written.Get("counted") == "true"
	if err == nil {
		changed, err = c.team.SetCountedAll(c.r.Context(), selected, counted)
	}
	if err != nil {
		return again(excludeForm(), written, err, func(form ui.Form) error { return c.showExclude(excludeView{Form: form}) })
	}
	message := "Excluded from the counts: "
	if counted {
		message = "Counted again: "
	}
	return c.showExclude(excludeView{Form: excludeForm(), Changed: message + ui.Plural(changed, "report", "reports") + "."})
}

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
	return selected, nil
}
