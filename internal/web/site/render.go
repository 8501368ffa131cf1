package site

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/httproute"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/web/ui"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// Files are the templates and the static files of a site.
type Files struct {
	sources fs.FS
	assets  *assets
	// base has the layout and the parts. byName has the pages that have been used, each with a
	// copy of base: a daemon that only serves the API needs none.
	base   *template.Template
	mu     sync.Mutex
	byName map[string]*template.Template
}

// Load reads the static files, and parses the layout and the parts. Pages are parsed on first
// use. The files are
//
//	templates/NAME.html.tmpl       a page
//	templates/layout, parts        the frame of all pages, and what pages share
//	assets/style, modules          concatenated as style.css and app.js
//	assets/icon.svg
//	built/charts.js, licenses.txt  the output of scripts/build-assets.sh; may be missing
//
// Templates have functions in addition to those that format values.
func Load(sources fs.FS, functions template.FuncMap) (*Files, error) {
	a, err := loadAssets(sources)
	if err != nil {
		return nil, err
	}
	base, err := template.New("layout").Funcs(formatFuncs(a)).Funcs(functions).ParseFS(sources, "templates/layout/*.tmpl", "templates/parts/*.tmpl")
	if err != nil {
		return nil, fmt.Errorf("read the templates: %w", err)
	}
	return &Files{sources: sources, assets: a, base: base, byName: map[string]*template.Template{}}, nil
}

// page returns a page with the layout and the parts.
func (f *Files) page(name string) (*template.Template, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if page := f.byName[name]; page != nil {
		return page, nil
	}
	page, err := f.base.Clone()
	if err == nil {
		page, err = page.ParseFS(f.sources, path.Join("templates", name+".html.tmpl"))
	}
	if err != nil {
		return nil, fmt.Errorf("read the template %s: %w", name, err)
	}
	f.byName[name] = page
	return page, nil
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
	Navigation   []menuItem
	PersonMenu   []menuItem
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

// menuItem is an entry of a menu as the viewer sees it.
type menuItem struct {
	ui.Tab
	Icon string
	// Rest is true for the items that the bar of a phone has no room for.
	Rest bool
}

// barItems is how many items the bar of a phone has, beside its menu.
const barItems = 4

// menu returns the entries that the viewer may open.
func (c *Call) menu(entries []MenuEntry, section string) []menuItem {
	var list []menuItem
	for _, entry := range entries {
		if !c.Viewer.May(entry.Access) {
			continue
		}
		href := Prefix + entry.Path
		if entry.Carries {
			href = c.Link(href)
		}
		list = append(list, menuItem{ui.Tab{Link: ui.Link{Text: entry.Title, Href: href}, Current: entry.Title == section}, entry.Icon, len(list) >= barItems})
	}
	return list
}

// Render writes a page, or the one of its tables that the request asks for as CSV. It executes the
// template before it sends the first byte, so that an error still gets an error page.
func (c *Call) Render(status int, page Page, data any, tables ...ui.Table) error {
	for _, table := range tables {
		if table.ID != "" && c.WantsCSV(table.ID) {
			return c.CSV(table)
		}
	}
	framed := c.frame(page, data)
	if c.Viewer.Access >= AccessView {
		var err error
		if framed.Sample, err = c.Team.HasSample(c.R.Context()); err != nil {
			return err
		}
	}
	return c.execute(status, "layout", framed)
}

// Fragment writes a part of a page, for a script that inserts it.
func (c *Call) Fragment(page Page, name string, data any) error {
	return c.execute(http.StatusOK, name, c.frame(page, data))
}

// execute executes a template of a page, and writes the result.
func (c *Call) execute(status int, name string, framed frame) error {
	t, err := c.site.options.Files.page(framed.Template)
	if err != nil {
		return err
	}
	var body bytes.Buffer
	if err := t.ExecuteTemplate(&body, name, framed); err != nil {
		return fmt.Errorf("render %s of %s: %w", name, framed.Template, err)
	}
	c.release() // a slow client must not hold the memory
	h := c.W.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	// After sign-out, the back button must not show old pages.
	h.Set("Cache-Control", "no-store")
	writeCompressed(c.W, c.R, status, body.Bytes())
	return nil
}

func (c *Call) frame(page Page, data any) frame {
	options := c.site.options
	f := frame{
		Page: page, Viewer: c.Viewer, Theme: c.theme(), Path: c.R.URL.RequestURI(), Attributions: options.Attributions, APIDocs: options.APIDocs, Data: data,
		Done:    options.Done(c.R.URL.Query().Get("done"), c.Viewer),
		Carried: template.URL(c.Link("")), //nolint:gosec // encoded
	}
	if c.Viewer.Access == AccessPublic && !c.Viewer.Operator {
		f.Bare = true
		return f
	}
	if f.MaySearch = c.Viewer.May(AccessView); f.MaySearch {
		f.CarriedFields = ui.HiddenFields(Carried(c.R.URL.Query()))
		if page.Template == "search" {
			f.Searched = c.R.URL.Query().Get("q")
		}
	}
	f.Navigation, f.PersonMenu = c.menu(options.Navigation, page.Section), c.menu(options.PersonMenu, page.Section)
	return f
}

// minCompressed is the size in bytes from which compression pays off.
const minCompressed = 1024

// writeCompressed writes a response, in gzip if the client accepts it and it pays off.
func writeCompressed(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	if len(body) >= minCompressed && httproute.AcceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
		body = compress(body, gzip.DefaultCompression)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone
}

func compress(body []byte, level int) []byte {
	var packed bytes.Buffer
	// The level is valid, and a buffer never fails.
	out, _ := gzip.NewWriterLevel(&packed, level)
	_, _ = out.Write(body)
	_ = out.Close()
	return packed.Bytes()
}

// formatFuncs are the template functions. None returns HTML, so that all output is
// escaped.
func formatFuncs(a *assets) template.FuncMap {
	return template.FuncMap{
		"asset":        a.url,
		"number":       func(n any) string { return phrase.Number(reflect.ValueOf(n).Int()) },
		"percent":      phrase.Percent,
		"words":        phrase.State[string],
		"moment":       ui.Moment,
		"machine":      wire.Time,
		"wireMoment":   ui.WireMoment,
		"date":         ui.Date,
		"day":          func(d dmarcd.Day) string { return d.String() },
		"dayOf":        dmarcd.DayOf,
		"size":         ui.Size,
		"tone":         ui.Tone,
		"gradeTone":    ui.GradeTone,
		"join":         strings.Join,
		"plural":       func(n int, thing string) string { return phrase.Count(int64(n), thing) },
		"segment":      url.PathEscape,
		"isZero":       time.Time.IsZero,
		"spark":        ui.NewSparkline,
		"diff":         ui.DiffTerms,
		"percentWidth": ui.PercentWidth,
		"minus":        func(a, b int) int { return a - b },
		"last":         func(list []string) int { return len(list) - 1 },
		"isName":       ui.IsName,
		"names":        ui.Names,
		"seen":         func(seen *bool) bool { return seen != nil && *seen },
		"trimSuffix":   func(s, suffix string) string { return strings.TrimSpace(strings.TrimSuffix(s, suffix)) },
	}
}
