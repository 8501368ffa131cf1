package web

import "github.com/dmarcd/dmarcd/internal/web/ui"

// settingsFrame returns the page of a team setting.
func settingsFrame(template, title string) Page {
	return Page{Template: template, Title: title, Section: "Settings"}
}

// listView is a list, with the form that adds to it or filters it.
type listView struct {
	// Heading is the heading of a page that shares its template.
	Heading string
	Tabs    []ui.Tab
	Table   ui.Table
	Pager   ui.Pager
	Form    ui.Form
	// Secret is a new secret, shown only once; "" for none.
	Secret string
}

// settingsList shows a list of the team settings, or its table as a file.
func (c *call) settingsList(status int, title string, table ui.Table, form ui.Form, secret string) error {
	view := listView{Tabs: settingsTabs(c.viewer, title), Table: table, Form: form, Secret: secret}
	return c.render(status, settingsFrame(table.ID, title), view, table)
}

// settingsTabs are the tabs of the team settings.
func settingsTabs(v Viewer, current string) []ui.Tab {
	var tabs []ui.Tab
	for _, t := range []struct {
		title, path string
		access      Access
	}{
		{"Tokens", "/settings/tokens", AccessView},
		{"Members", "/settings/members", AccessView},
		{"Mailboxes", "/settings/mailboxes", AccessView},
		{"Webhooks", "/settings/webhooks", AccessView},
		{"Retention", "/settings/retention", AccessView},
		{"Audit log", "/settings/audit", AccessOwn},
	} {
		if v.may(t.access) {
			tabs = append(tabs, ui.Tab{Link: ui.Link{Text: t.title, Href: Prefix + t.path}, Current: t.title == current})
		}
	}
	return tabs
}
