package web

import (
	"context"
	"encoding/csv"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/httproute"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// call is one request.
type call struct {
	web     *Web
	w       http.ResponseWriter
	r       *http.Request
	params  httproute.Params
	session string // the secret; "" on public routes

	// The user and their use cases; nil on public routes.
	account *service.Account
	viewer  Viewer
	team    *service.Team // limited to the tag
	system  *service.System
	// tag is the tag that the page is limited to, "" for all domains.
	tag  string
	mail mailReader
}

// maxForm limits the body of a form, in bytes. Files have their own limit.
const maxForm = 64 << 10

// withForm returns a handler that reads the form of the request first.
func withForm(handle func(c *call, written url.Values) error) func(c *call) error {
	return func(c *call) error {
		c.r.Body = http.MaxBytesReader(c.w, c.r.Body, maxForm)
		if err := c.r.ParseForm(); err != nil || !legible(texts(c.r.PostForm)...) {
			return errBadForm
		}
		return handle(c, c.r.PostForm)
	}
}

// legible reports whether all texts can be in the database. Others must not be queried: PostgreSQL
// rejects them.
func legible(texts ...string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return !utf8.ValidString(text) || strings.Contains(text, "\x00") })
}

// texts returns the values of a query or form.
func texts(of url.Values) []string { return slices.Concat(slices.Collect(maps.Values(of))...) }

// again shows a form with the user's input and an error about it; it returns other errors.
func again(form ui.Form, written url.Values, err error, show func(ui.Form) error) error {
	filled, ok := form.Filled(written, err)
	if !ok {
		return err
	}
	return show(filled)
}

// redirect redirects to one of our pages after a form.
func (c *call) redirect(target string) error {
	c.w.Header().Set("Cache-Control", "no-store")
	http.Redirect(c.w, c.r, target, http.StatusSeeOther)
	return nil
}

// done redirects to a page that shows what was done; see doneMessages.
func (c *call) done(path, what string) error {
	return c.redirect(path + "?" + url.Values{"done": {what}}.Encode())
}

// finish is done, unless there was an error.
func (c *call) finish(err error, path, what string) error {
	if err != nil {
		return err
	}
	return c.done(path, what)
}

// withID adapts a handler of the item whose id is in the path. An invalid one does not exist.
func withID[ID any](parse func(string) (ID, error), handle func(c *call, id ID) error) func(*call) error {
	return func(c *call) error {
		id, err := parse(c.params.Get("id"))
		if err != nil {
			return dmarcd.ErrNotFound
		}
		return handle(c, id)
	}
}

// withFormID is withID for a handler of a form.
func withFormID[ID any](parse func(string) (ID, error), handle func(c *call, id ID, written url.Values) error) func(*call) error {
	return withForm(func(c *call, written url.Values) error {
		return withID(parse, func(c *call, id ID) error { return handle(c, id, written) })(c)
	})
}

// withDomain adapts a handler of a form about the domain in the path.
func withDomain(handle func(c *call, domain dmarcd.Domain, written url.Values) error) func(*call) error {
	return withForm(func(c *call, written url.Values) error {
		domain, err := c.team.Domain(c.r.Context(), c.params.Get("domain"))
		if err != nil {
			return err
		}
		return handle(c, domain, written)
	})
}

// changing returns the handler of a button that changes the item whose id is in the path.
func changing[ID any](parse func(string) (ID, error), change func(*service.Team, context.Context, ID) error, path, done string) func(*call) error {
	return withID(parse, func(c *call, id ID) error { return c.finish(change(c.team, c.r.Context(), id), path, done) })
}

// wantsCSV reports whether the request asks for a table of the page as CSV.
func (c *call) wantsCSV(table string) bool { return c.r.URL.Query().Get("csv") == table }

// csv sends a table as a CSV file.
func (c *call) csv(t ui.Table) error {
	h := c.w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="dmarcd-`+t.ID+`.csv"`)
	h.Set("Cache-Control", "no-store")
	out := csv.NewWriter(c.w)
	for _, fields := range t.Lines() {
		_ = out.Write(fields) // Error below returns it
	}
	out.Flush()
	if out.Error() != nil {
		panic(http.ErrAbortHandler) // a truncated file must not look complete
	}
	return nil
}

// ownPath returns the path of a redirect, or the first page if it is not one of our
// pages: a redirect never leaves the host.
func ownPath(path string) string {
	if !strings.HasPrefix(path, Prefix+"/") || strings.ContainsAny(path, "\\\r\n") {
		return Prefix + "/"
	}
	return path
}

// referer returns our page that sent a form, or the first page if the browser does not
// send it.
func (c *call) referer() string {
	from, err := url.Parse(c.r.Referer())
	if err != nil || from.Host != c.r.Host {
		return Prefix + "/"
	}
	return ownPath(from.RequestURI())
}

// link returns the path with the period and the tag of the page, and with changes to the
// query; see ui.WithQuery.
func (c *call) link(path string, changes ...string) string {
	return ui.WithQuery(path, carried(c.r.URL.Query()), changes...)
}

// carrying returns the form with hidden fields for what links keep.
func (c *call) carrying(form ui.Form) ui.Form {
	for _, choice := range ui.Kept(carried(c.r.URL.Query())) {
		if !slices.ContainsFunc(form.Fields, func(f ui.Field) bool { return f.Name == choice.Value }) {
			form.Fields = append(form.Fields, ui.Field{Name: choice.Value, Type: "hidden", Value: choice.Label})
		}
	}
	return form
}

// carried returns the parameters that links keep: the period, the tag, and the filters of the
// domains on the overview (search, policy, trouble) and of the senders (sender, failing).
func carried(query url.Values) url.Values {
	values := url.Values{}
	for _, name := range []string{"days", "from", "to", "tag", "search", "policy", "trouble", "sender", "failing"} {
		if value := query.Get(name); value != "" {
			values.Set(name, value)
		}
	}
	return values
}

// wantsFragment reports whether a script asks for a part of a page.
func (c *call) wantsFragment() bool { return strings.Contains(c.r.Header.Get("Accept"), "fragment") }

// pageNumber returns the number of the requested page, starting at 1.
func pageNumber(query url.Values) int {
	n, err := strconv.Atoi(query.Get("page"))
	if err != nil || n < 1 || n > maxPageNumber {
		return 1
	}
	return n
}

// maxPageNumber is above that of any list. The number of the first row must not overflow.
const maxPageNumber = 1_000_000
