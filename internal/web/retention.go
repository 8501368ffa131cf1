package web

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

func retentionForm(r service.Retention) ui.Form {
	length := func(name, label, hint string, days int) ui.Field {
		return ui.Field{Name: name, Label: label, Type: "number", Value: strconv.Itoa(days), Required: true, Hint: hint}
	}
	return ui.Form{Path: Prefix + "/settings/retention", Method: "post", Submit: "Save retention", Fields: []ui.Field{
		length("counters", "Daily totals", "For the overview, the charts and the list of reports.", r.Counters),
		length("records", "Records", "The records of aggregate reports, and the contents of TLS reports.", r.Records),
		length("originals", "Originals", "Emails and files as received.", r.Originals),
	}}
}

func (s *Web) retention(c *call) error {
	retention, err := c.team.Retention(c.r.Context())
	if err != nil {
		return err
	}
	return s.showRetention(c, http.StatusOK, retentionForm(retention))
}

func (s *Web) showRetention(c *call, status int, form ui.Form) error {
	return c.render(status, settingsFrame("retention", "Retention"), listView{Tabs: settingsTabs(c.viewer, "Retention"), Form: form})
}

func (s *Web) setRetention(c *call, written url.Values) error {
	retention, err := readRetention(written)
	if err == nil {
		err = c.team.SetRetention(c.r.Context(), retention)
	}
	if err != nil {
		return again(retentionForm(service.Retention{}), written, err, func(form ui.Form) error {
			return s.showRetention(c, http.StatusUnprocessableEntity, form)
		})
	}
	return c.done(Prefix+"/settings/retention", "retention-set")
}

// maxRetention limits a number of days: a century.
const maxRetention = 36525

func readRetention(written url.Values) (service.Retention, error) {
	var r service.Retention
	for _, field := range []struct {
		name string
		days *int
	}{
		{"counters", &r.Counters}, {"records", &r.Records}, {"originals", &r.Originals},
	} {
		days, err := strconv.Atoi(written.Get(field.name))
		if err != nil || days < 0 || days > maxRetention {
			return service.Retention{}, &dmarcd.InvalidError{Field: field.name, Message: "Enter a number of days from 1 to 36,525, or 0 for no limit."}
		}
		*field.days = days
	}
	return r, nil
}
