package web

import (
	"encoding/csv"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd/internal/httproute"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// call is one request on its way through the pages.
type call struct {
	web     *Web
	w       http.ResponseWriter
	r       *http.Request
	params  httproute.Params
	session string // the secret; "" on a route for anybody

	// The user, and what they can do; nil on a route for anybody.
	account *service.Account
	viewer  Viewer
	team    *service.Team // narrowed to the tag
	system  *service.System
	// tag is the tag of the domains that the page is about, "" for all.
	tag string
	// mail is what the page reads of records.
	mail mailReader
}

// maxForm bounds the body of a form. Files have a limit of their own.
const maxForm = 64 << 10

// form reads the body as a form.
func (c *call) form() (url.Values, error) {
	c.r.Body = http.MaxBytesReader(c.w, c.r.Body, maxForm)
	if err := c.r.ParseForm(); err != nil {
		return nil, errBadForm
	}
	return c.r.PostForm, nil
}

// redirect leads to a page of ours after a form was taken.
func (c *call) redirect(target string) error {
	c.w.Header().Set("Cache-Control", "no-store")
	http.Redirect(c.w, c.r, target, http.StatusSeeOther)
	return nil
}

// done leads to a page that then says what was done; see doneMessages.
func (c *call) done(path, what string) error {
	return c.redirect(path + "?" + url.Values{"done": {what}}.Encode())
}

// wantsCSV reports whether the table of the page is asked for.
func (c *call) wantsCSV(table string) bool { return c.r.URL.Query().Get("csv") == table }

// csv answers with a table as a file.
func (c *call) csv(t ui.Table) error {
	h := c.w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="dmarcd-`+t.ID+`.csv"`)
	h.Set("Cache-Control", "no-store")
	out := csv.NewWriter(c.w)
	for _, fields := range t.Lines() {
		_ = out.Write(fields) // what fails is told by Error below
	}
	out.Flush()
	if out.Error() != nil {
		panic(http.ErrAbortHandler) // a short file must not look like a whole one
	}
	return nil
}

// ownPath returns the path that a request asks to be redirected to, or the first page if
// it is not a path of the pages: a redirect never leaves the host.
func ownPath(path string) string {
	if !strings.HasPrefix(path, Prefix+"/") || strings.ContainsAny(path, "\\\r\n") {
		return Prefix + "/"
	}
	return path
}

// referer returns the page of ours that a form was sent from, or the first page
// where the browser does not tell.
func (c *call) referer() string {
	from, err := url.Parse(c.r.Referer())
	if err != nil || from.Host != c.r.Host {
		return Prefix + "/"
	}
	return ownPath(from.RequestURI())
}

// link returns the path with the period and the tag of the page, so that they follow the
// link, and with some changes; see ui.WithQuery.
func (c *call) link(path string, changes ...string) string {
	return ui.WithQuery(path, carried(c.r.URL.Query()), changes...)
}

// carrying returns a form that takes along the period and the tag of the page.
func (c *call) carrying(form ui.Form) ui.Form {
	for _, kept := range ui.Kept(carried(c.r.URL.Query())) {
		if !slices.ContainsFunc(form.Fields, func(f ui.Field) bool { return f.Name == kept.Value }) {
			form.Fields = append(form.Fields, ui.Field{Name: kept.Value, Type: "hidden", Value: kept.Label})
		}
	}
	return form
}

// carried returns the part of a query that follows links: which days and which tag the page
// is about.
func carried(query url.Values) url.Values {
	kept := url.Values{}
	for _, name := range []string{"days", "from", "to", "tag"} {
		if value := query.Get(name); value != "" {
			kept.Set(name, value)
		}
	}
	return kept
}

// wantsFragment reports whether a script asks, which puts a part of a page in its
// place.
func (c *call) wantsFragment() bool { return strings.Contains(c.r.Header.Get("Accept"), "fragment") }

// pageNumber reads which page of a list is asked for, from 1.
func pageNumber(query url.Values) int {
	n, err := strconv.Atoi(query.Get("page"))
	if err != nil || n < 1 {
		return 1
	}
	return n
}
