package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"sync"

	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// templateSources contains a template for each page, shared templates in parts, and the
// frame of all pages in layout.
//
//go:embed templates
var templateSources embed.FS

// templates are the layout and the parts, and the pages that have been used with them: a copy of
// both belongs to each page, and a daemon that only serves the API needs none.
type templates struct {
	base   *template.Template
	mu     sync.Mutex
	byName map[string]*template.Template
}

// page returns a page with the layout and the parts.
func (t *templates) page(name string) (*template.Template, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if page := t.byName[name]; page != nil {
		return page, nil
	}
	page, err := t.base.Clone()
	if err == nil {
		page, err = page.ParseFS(templateSources, path.Join("templates", name+".html.tmpl"))
	}
	if err != nil {
		return nil, fmt.Errorf("read the template %s: %w", name, err)
	}
	t.byName[name] = page
	return page, nil
}

// builtInFiles are the assets and the templates that use them.
type builtInFiles struct {
	assets    *assets
	templates *templates
}

// builtIn loads the assets and parses the layout, once per process: they never change.
var builtIn = sync.OnceValues(func() (b builtInFiles, err error) {
	if b.assets, err = loadAssets(); err == nil {
		b.templates, err = parseTemplates(b.assets)
	}
	return b, err
})

// parseTemplates parses the layout and the parts.
func parseTemplates(a *assets) (*templates, error) {
	base, err := template.New("layout").Funcs(formatFuncs(a)).ParseFS(templateSources, "templates/layout/*.tmpl", "templates/parts/*.tmpl")
	if err != nil {
		return nil, fmt.Errorf("read the templates: %w", err)
	}
	return &templates{base: base, byName: map[string]*template.Template{}}, nil
}

// Page describes the frame of a page.
type Page struct {
	// Template is the name of the template.
	Template string
	// Title is the title of the browser tab and, if the page has no heading of its own,
	// the heading.
	Title string
	// Section is the navigation entry of the page.
	Section string
	// Trail is the breadcrumb trail, without this page.
	Trail []ui.Link
	// Charts means that the page needs the chart script.
	Charts bool
	// Bare omits the navigation, for users who are not signed in.
	Bare bool
}

// frame is the data of a template.
type frame struct {
	Page
	Viewer       Viewer
	Theme        string
	Path         string // of the request, with its query
	Done         string // message about the last form
	Navigation   []ui.Tab
	Attributions []ui.Link
	APIDocs      string
	// Carried is the query that links to other pages keep, with its question mark.
	Carried template.URL
	Data    any
	// MaySearch shows the search field, which contains Searched; CarriedFields are its
	// hidden fields.
	MaySearch bool
	// Sample means that the team has sample data.
	Sample        bool
	Searched      string
	CarriedFields []ui.Choice
}

// render writes a page, or the one of its tables that the request asks for as CSV. It executes the
// template before it sends the first byte, so that an error still gets an error page.
func (c *call) render(status int, page Page, data any, tables ...ui.Table) error {
	for _, table := range tables {
		if table.ID != "" && c.wantsCSV(table.ID) {
			return c.csv(table)
		}
	}
	t, err := c.web.templates.page(page.Template)
	if err != nil {
		return err
	}
	var body bytes.Buffer
	framed := c.frame(page, data)
	if c.viewer.Access >= AccessView {
		if framed.Sample, err = c.team.HasSample(c.r.Context()); err != nil {
			return err
		}
	}
	if err := t.ExecuteTemplate(&body, "layout", framed); err != nil {
		return fmt.Errorf("render %s: %w", page.Template, err)
	}
	c.html(status, body.Bytes())
	return nil
}

// fragment writes a part of a page, for a script that inserts it.
func (c *call) fragment(page Page, name string, data any) error {
	t, err := c.web.templates.page(page.Template)
	if err != nil {
		return err
	}
	var body bytes.Buffer
	if err := t.ExecuteTemplate(&body, name, c.frame(page, data)); err != nil {
		return fmt.Errorf("render %s of %s: %w", name, page.Template, err)
	}
	c.html(http.StatusOK, body.Bytes())
	return nil
}

func (c *call) html(status int, body []byte) {
	h := c.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	c.mail.release() // a slow client must not hold the memory
	// After sign-out, the back button must not show old pages.
	h.Set("Cache-Control", "no-store")
	writeCompressed(c.w, c.r, status, body)
}

func (c *call) frame(page Page, data any) frame {
	f := frame{
		Page: page, Viewer: c.viewer, Theme: c.theme(), Path: c.r.URL.RequestURI(),
		Done: c.doneMessage(), Attributions: c.web.options.Attributions,
		APIDocs: c.web.options.APIDocs, Data: data,
		Carried: template.URL(c.link("")), //nolint:gosec // encoded
	}
	if c.viewer.Access == accessAnybody && !c.viewer.Operator {
		f.Bare = true
		return f
	}
	if f.MaySearch = c.viewer.may(AccessView); f.MaySearch {
		f.CarriedFields = ui.Kept(carried(c.r.URL.Query()))
		if page.Template == "search" {
			f.Searched = c.r.URL.Query().Get("q")
		}
	}
	for _, entry := range []struct {
		title, href string
		access      Access
	}{
		{"Overview", c.link(Prefix + "/"), AccessView},
		{"Senders", c.link(Prefix + "/senders"), AccessView},
		{"Changes", c.link(Prefix + "/changes"), AccessView},
		{"Alerts", Prefix + "/alerts", AccessView},
		{"Reports", c.link(Prefix + "/reports"), AccessView},
		{"Record builder", Prefix + "/builder", AccessView},
		{"Settings", Prefix + "/settings/tokens", AccessView},
		{"Installation", Prefix + "/installation/teams", accessOperate},
	} {
		if c.viewer.may(entry.access) {
			f.Navigation = append(f.Navigation, ui.Tab{Link: ui.Link{Text: entry.title, Href: entry.href}, Current: entry.title == page.Section})
		}
	}
	return f
}
