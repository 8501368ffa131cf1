package api

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

const (
	// maxPage limits the page size.
	maxPage = 1000
	// defaultPage is the default page size.
	defaultPage = 100
)

// query has the parameters of a request. It keeps the first error, which the caller checks after
// it has read them: values after it are not valid.
type query struct {
	url.Values
	err error
}

// fail sets the error, unless there is one.
func (q *query) fail(err error) {
	if q.err == nil {
		q.err = err
	}
}

// reject is fail with a message about a parameter.
func (q *query) reject(name, message string) {
	q.fail(&dmarcd.InvalidError{Field: name, Message: message})
}

// limit returns the page size, or the default of the list.
func (q *query) limit(standard int) int {
	if !q.Has("limit") {
		return standard
	}
	limit, err := strconv.Atoi(q.Get("limit"))
	if err != nil || limit < 1 || limit > maxPage {
		q.reject("limit", "The parameter limit must be a whole number from 1 to 1000.")
	}
	return limit
}

// part returns the page size and the cursor of wire.NewPage; "" is the start.
func (q *query) part() (limit int, after string) { return q.limit(defaultPage), q.Get("after") }

// cursor is part for a list ordered by time.
func (q *query) cursor() (limit int, after service.Cursor) {
	limit, text := q.part()
	if text != "" {
		var err error
		after.At, after.ID, err = wire.ParseCursor(text)
		q.fail(err)
	}
	return limit, after
}

// domain returns the parameter domain, "" if absent.
func (q *query) domain() string {
	if !q.Has("domain") {
		return ""
	}
	name, err := dmarcd.ParseName(q.Get("domain"))
	q.fail(err)
	return name
}

func (q *query) days() (days dmarcd.Days) {
	for _, end := range []struct {
		name string
		day  **dmarcd.Day
	}{{"from", &days.From}, {"to", &days.To}} {
		if !q.Has(end.name) {
			continue
		}
		day, err := dmarcd.ParseDay(q.Get(end.name))
		if err != nil {
			q.reject(end.name, "The parameter "+end.name+" must be a day in the form YYYY-MM-DD.")
		}
		*end.day = &day
	}
	if days.From != nil && days.To != nil && *days.From > *days.To {
		q.reject("from", "The parameter from must not be later than to.")
	}
	return days
}

// text returns a parameter that can be compared with texts in the database.
func (q *query) text(name string) string {
	if !storable(q.Get(name)) {
		q.reject(name, "The parameter "+name+" must be text in UTF-8.")
	}
	return q.Get(name)
}

// word returns a parameter with one of the allowed values, "" if absent.
func word[T ~string](q *query, name string, words ...T) T {
	word := T(q.Get(name))
	if q.Has(name) && !slices.Contains(words, word) {
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = string(w)
		}
		q.reject(name, "The parameter "+name+" must be one of "+strings.Join(quoted, ", ")+".")
	}
	return word
}

// storable reports whether a text can be in the database. Others must not be queried:
// PostgreSQL rejects them.
func storable(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

// reserveRows returns the error of the query. Without one it waits until the response may have
// that many rows, and for the turn to read and encode them.
func (c *call) reserveRows(rows int) (err error) {
	if c.query.err != nil {
		return c.query.err
	}
	if c.release, err = c.service.ReserveRows(c.r.Context(), rows); err != nil {
		return err
	}
	return c.awaitTurn(rows)
}

// awaitTurn waits for the turn to read and encode that many rows, unless they are few. The turn ends
// before they are written.
func (c *call) awaitTurn(rows int) (err error) {
	if rows > defaultPage+1 { // one more shows whether there is a next page
		c.endTurn, err = c.service.ReadTurn(c.r.Context())
	}
	return err
}
