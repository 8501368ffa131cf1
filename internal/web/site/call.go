package site

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
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// Call is one request.
type Call struct {
	site   *Site
	W      http.ResponseWriter
	R      *http.Request
	Params httproute.Params

	// The user and their use cases; nil on public routes.
	Account *service.Account
	Viewer  Viewer
	Team    *service.Team // limited to the tag
	System  *service.System
	// Tag is the tag that the page is limited to, "" for all domains.
	Tag string

	mail mailRead
	// browser is the secret of the browser, "" if not read yet.
	browser string
	// reserved releases the reserved memory, nil if none is reserved.
	reserved func()
}

// maxForm limits the body of a form, in bytes. Files have their own limit.
const maxForm = 64 << 10

// WithForm returns a handler that reads the form of the request first.
func WithForm(handle func(c *Call, written url.Values) error) func(c *Call) error {
	return func(c *Call) error {
		c.R.Body = http.MaxBytesReader(c.W, c.R.Body, maxForm)
		if err := c.R.ParseForm(); err != nil || !legible(texts(c.R.PostForm)...) {
			return ErrBadForm
		}
		return handle(c, c.R.PostForm)
	}
}

// legible reports whether all texts can be in the database. Others must not be queried: PostgreSQL
// rejects them.
func legible(texts ...string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return !utf8.ValidString(text) || strings.Contains(text, "\x00") })
}

// texts returns the values of a query or form.
func texts(of url.Values) []string { return slices.Concat(slices.Collect(maps.Values(of))...) }

// Again shows a form with the user's input and an error about it; it returns other errors.
func Again(form ui.Form, written url.Values, err error, show func(ui.Form) error) error {
	filled, ok := form.Filled(written, err)
	if !ok {
		return err
	}
	return show(filled)
}

// Redirect redirects to one of our pages after a form.
func (c *Call) Redirect(target string) error {
	c.W.Header().Set("Cache-Control", "no-store")
	http.Redirect(c.W, c.R, target, http.StatusSeeOther) //nolint:gosec // callers pass our own paths; see OwnPath
	return nil
}

// Done redirects to a page that shows what was done, by a word; see Options.
func (c *Call) Done(path, what string) error {
	return c.Redirect(path + "?" + url.Values{"done": {what}}.Encode())
}

// Finish is Done, unless there was an error.
func (c *Call) Finish(err error, path, what string) error {
	if err != nil {
		return err
	}
	return c.Done(path, what)
}

// WithID adapts a handler of the item whose id is in the path. An invalid one does not exist.
func WithID[ID any](parse func(string) (ID, error), handle func(c *Call, id ID) error) func(*Call) error {
	return func(c *Call) error {
		id, err := parse(c.Params.Get("id"))
		if err != nil {
			return dmarcd.ErrNotFound
		}
		return handle(c, id)
	}
}

// WithFormID is WithID for a handler of a form.
func WithFormID[ID any](parse func(string) (ID, error), handle func(c *Call, id ID, written url.Values) error) func(*Call) error {
	return WithForm(func(c *Call, written url.Values) error {
		return WithID(parse, func(c *Call, id ID) error { return handle(c, id, written) })(c)
	})
}

// WithDomain adapts a handler of a form about the domain in the path.
func WithDomain(handle func(c *Call, domain dmarcd.Domain, written url.Values) error) func(*Call) error {
	return WithForm(func(c *Call, written url.Values) error {
		domain, err := c.Team.Domain(c.R.Context(), c.Params.Get("domain"))
		if err != nil {
			return err
		}
		return handle(c, domain, written)
	})
}

// Changing returns the handler of a button that changes the item whose id is in the path.
func Changing[ID any](parse func(string) (ID, error), change func(*service.Team, context.Context, ID) error, path, done string) func(*Call) error {
	return WithID(parse, func(c *Call, id ID) error { return c.Finish(change(c.Team, c.R.Context(), id), path, done) })
}

// WantsCSV reports whether the request asks for a table of the page as CSV.
func (c *Call) WantsCSV(table string) bool { return c.R.URL.Query().Get("csv") == table }

// CSV sends a table as a CSV file.
func (c *Call) CSV(t ui.Table) error {
	h := c.W.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="dmarcd-`+t.ID+`.csv"`)
	h.Set("Cache-Control", "no-store")
	out := csv.NewWriter(c.W)
	for _, fields := range t.Lines() {
		_ = out.Write(fields) // Error below returns it
	}
	out.Flush()
	if out.Error() != nil {
		panic(http.ErrAbortHandler) // a truncated file must not look complete
	}
	return nil
}

// OwnPath returns the path of a redirect, or the first page if it is not one of our
// pages: a redirect never leaves the host.
func OwnPath(path string) string {
	if !strings.HasPrefix(path, Prefix+"/") || strings.ContainsAny(path, "\\\r\n") {
		return Prefix + "/"
	}
	return path
}

// referer returns our page that sent a form, or the first page if the browser does not
// send it.
func (c *Call) referer() string {
	from, err := url.Parse(c.R.Referer())
	if err != nil || from.Host != c.R.Host {
		return Prefix + "/"
	}
	return OwnPath(from.RequestURI())
}

// Link returns the path with the period and the tag of the page, and with changes to the
// query; see ui.WithQuery.
func (c *Call) Link(path string, changes ...string) string {
	return ui.WithQuery(path, Carried(c.R.URL.Query()), changes...)
}

// Carrying returns the form with hidden fields for what links keep.
func (c *Call) Carrying(form ui.Form) ui.Form {
	for _, choice := range ui.HiddenFields(Carried(c.R.URL.Query())) {
		if !slices.ContainsFunc(form.Fields, func(f ui.Field) bool { return f.Name == choice.Value }) {
			form.Fields = append(form.Fields, ui.Field{Name: choice.Value, Type: "hidden", Value: choice.Label})
		}
	}
	return form
}

// Carried returns the parameters that links keep: the period, the tag, and the filters of the
// senders (sender, failing).
func Carried(query url.Values) url.Values {
	values := url.Values{}
	for _, name := range []string{"days", "from", "to", "tag", "sender", "failing"} {
		if value := query.Get(name); value != "" {
			values.Set(name, value)
		}
	}
	return values
}

// WantsFragment reports whether a script asks for a part of a page.
func (c *Call) WantsFragment() bool { return strings.Contains(c.R.Header.Get("Accept"), "fragment") }

// PageNumber returns the number of the requested page, starting at 1.
func PageNumber(query url.Values) int {
	n, err := strconv.Atoi(query.Get("page"))
	if err != nil || n < 1 || n > maxPageNumber {
		return 1
	}
	return n
}

// maxPageNumber exceeds the pages of any list, and keeps the number of the first row from
// overflowing.
const maxPageNumber = 1_000_000

// mailRead is the mail that a page has read. Several parts of a page share one read.
type mailRead struct {
	*insight.Mail // nil before the first read
	domain        string
	period        ui.Period
}

// Mail returns the mail of a domain, or of all domains if it is "". It is valid until other
// mail is read, or the page is sent. An unknown domain is dmarcd.ErrNotFound.
func (c *Call) Mail(domain string, period ui.Period) (*insight.Mail, error) {
	if c.mail.Mail != nil && c.mail.domain == domain && c.mail.period == period {
		return c.mail.Mail, nil
	}
	c.closeMail()
	var name string
	if domain != "" {
		found, err := c.Team.Domain(c.R.Context(), domain)
		if err != nil {
			return nil, err
		}
		name = found.Name
	}
	mail, err := c.Team.Mail(c.R.Context(), name, period.Days())
	if err != nil {
		return nil, err
	}
	c.mail = mailRead{mail, domain, period}
	return mail, nil
}

func (c *Call) closeMail() {
	if c.mail.Mail != nil {
		c.mail.Close()
		c.mail.Mail = nil
	}
}

// Reserve reserves memory for the page, unless some is reserved. It is released when the page
// is sent.
func (c *Call) Reserve(reserve func(context.Context) (context.Context, func(), error)) error {
	if c.reserved != nil {
		return nil
	}
	ctx, release, err := reserve(c.R.Context())
	if err != nil {
		return err
	}
	c.R, c.reserved = c.R.WithContext(ctx), release
	return nil
}

// release releases the memory of the page.
func (c *Call) release() {
	c.closeMail()
	if c.reserved != nil {
		c.reserved()
		c.reserved = nil
	}
}
