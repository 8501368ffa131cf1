package web

import (
	"mime"
	"net/http"
	"net/url"
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/export"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// settingsFrame returns the page of a team setting, whose title is that of its tab.
func settingsFrame(template, title string) site.Page {
	return site.Page{Template: template, Title: title, Section: title}
}

// settingsMenu are the team settings, as tabs and in the menu of the user.
var settingsMenu = []site.MenuEntry{
	{Title: "Members", Path: "/settings/members", Icon: "members", Access: site.AccessView},
	{Title: "Notifications", Path: "/settings/notifications", Icon: "alerts", Access: site.AccessView},
	{Title: "Mailboxes", Path: "/settings/mailboxes", Icon: "mailboxes", Access: site.AccessView},
	{Title: "Tokens", Path: "/settings/tokens", Icon: "tokens", Access: site.AccessView},
	{Title: "Retention", Path: "/settings/retention", Icon: "retention", Access: site.AccessView},
	{Title: "Audit log", Path: "/settings/audit", Icon: "reports", Access: site.AccessOwn},
	{Title: "Team data", Path: "/settings/team", Icon: "retention", Access: site.AccessOwn},
}

// settingsTabs are the tabs of the team settings.
func settingsTabs(v site.Viewer, current string) []ui.Tab {
	var tabs []ui.Tab
	for _, entry := range settingsMenu {
		if v.May(entry.Access) {
			tabs = append(tabs, ui.Tab{Link: ui.Link{Text: entry.Title, Href: Prefix + entry.Path}, Current: entry.Title == current})
		}
	}
	return tabs
}

type teamDataView struct {
	Tabs   []ui.Tab
	Team   string
	Delete ui.Form
}

func (s *Web) teamData(c *site.Call) error {
	return showTeamData(c, http.StatusOK, teamDeletion(c))
}

func teamDeletion(c *site.Call) ui.Form {
	return ui.Deletion(Prefix+"/settings/team/delete", "team", c.Viewer.Team.Name)
}

func showTeamData(c *site.Call, status int, form ui.Form) error {
	return c.Render(status, settingsFrame("settings_team", "Team data"), teamDataView{settingsTabs(c.Viewer, "Team data"), c.Viewer.Team.Name, form})
}

func (s *Web) deleteTeam(c *site.Call, written url.Values) error {
	if err := c.Team.Delete(c.R.Context(), written.Get("confirm")); err != nil {
		return site.Again(teamDeletion(c), written, err, func(form ui.Form) error {
			return showTeamData(c, http.StatusUnprocessableEntity, form)
		})
	}
	return c.Done(accountPath, "team-deleted")
}

// exportTeam sends everything that the team has as a file.
func (s *Web) exportTeam(c *site.Call) error {
	archive, err := c.Team.Archive(c.R.Context())
	if err != nil {
		return err
	}
	h := c.W.Header()
	h.Set("Content-Type", "application/zip")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": archive.Self.Name + ".zip"}))
	h.Set("Cache-Control", "no-store")
	if err := export.Team(c.R.Context(), archive, c.W); err != nil {
		panic(http.ErrAbortHandler) // a truncated file must not look complete
	}
	return nil
}

func retentionForm(r service.Retention) ui.Form {
	length := func(name, label, hint string, days int) ui.Field {
		return ui.Field{Name: name, Label: label, Type: "number", Value: strconv.Itoa(days), Required: true, Hint: hint}
	}
	return ui.Form{Path: Prefix + "/settings/retention", Method: "post", Submit: "Save retention", Fields: []ui.Field{
		length("counters", "Daily totals (days)", "For the overview, the charts and the list of reports.", r.Counters),
		length("records", "Records (days)", "At most as long as daily totals: the records of aggregate reports, and the contents of TLS reports.", r.Records),
		length("originals", "Originals (days)", "Emails and files as received.", r.Originals),
	}}
}

func (s *Web) retention(c *site.Call) error {
	retention, err := c.Team.Retention(c.R.Context())
	if err != nil {
		return err
	}
	return s.showRetention(c, http.StatusOK, retentionForm(retention))
}

func (s *Web) showRetention(c *site.Call, status int, form ui.Form) error {
	return c.Render(status, settingsFrame("settings_retention", "Retention"), listView{Tabs: settingsTabs(c.Viewer, "Retention"), Form: form})
}

func (s *Web) setRetention(c *site.Call, written url.Values) error {
	retention, err := readRetention(written)
	if err == nil {
		err = c.Team.SetRetention(c.R.Context(), retention)
	}
	if err != nil {
		return site.Again(retentionForm(service.Retention{}), written, err, func(form ui.Form) error {
			return s.showRetention(c, http.StatusUnprocessableEntity, form)
		})
	}
	return c.Done(Prefix+"/settings/retention", "retention-set")
}

func readRetention(written url.Values) (service.Retention, error) {
	var r service.Retention
	for _, field := range []struct {
		name string
		days *int
	}{
		{"counters", &r.Counters}, {"records", &r.Records}, {"originals", &r.Originals},
	} {
		days, err := strconv.Atoi(written.Get(field.name))
		if err != nil {
			return service.Retention{}, &dmarcd.InvalidError{Field: field.name, Message: "Enter a number of days from 1 to 36,525, or 0 for no limit."}
		}
		*field.days = days
	}
	return r, nil
}
