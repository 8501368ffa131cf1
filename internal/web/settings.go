package web

import "github.com/dmarcd/dmarcd/internal/web/ui"

// settingsFrame returns the page of a team setting.
func settingsFrame(template, title string) Page {
	return Page{Template: template, Title: title, Section: "Settings"}
}

// settingsTabs are the tabs of the team settings.
func settingsTabs(v Viewer, current string) []tab {
	var tabs []tab
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
			tabs = append(tabs, tab{ui.Link{Text: t.title, Href: Prefix + t.path}, t.title == current})
		}
	}
	return tabs
}
