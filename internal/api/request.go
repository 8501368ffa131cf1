package api

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/httproute"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

const (
	// maxPage limits the page size.
	maxPage = 1000
	// defaultPage is the default page size.
	defaultPage = 100
)

// query has the parameters of a request. It keeps the errors, which the caller checks after it has
// read them: values may be invalid until then. list begins the cursors of the list of the request.
type query struct {
	url.Values
	list string
	err  error
}

// listMark returns how the cursors of a list begin, so that no list of another path, domain, report,
// webhook or team takes them.
func listMark(team dmarcd.TeamID, path string, params httproute.Params) string {
	parts := []string{team.String(), path}
	for _, value := range params {
		if name, err := dmarcd.ParseName(value); err == nil {
			value = name // the same list, however the domain is written
		}
		parts = append(parts, value)
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return base64.RawURLEncoding.EncodeToString(sum[:6])
}

// writePage answers with a part of a list.
func writePage[T any](c *call, page wire.Page[T]) error {
	if page.Next != nil {
		page.Next = new(c.query.list + *page.Next)
	}
	return c.writeCacheable(page)
}

// fail adds an error about a parameter.
func (q *query) fail(name string, err error) {
	var invalid *dmarcd.InvalidError
	switch {
	case errors.As(err, &invalid):
		q.err = alsoInvalid(q.err, &dmarcd.InvalidError{Field: name, Code: invalid.Code, Message: invalid.Message})
	case err != nil && q.err == nil:
		q.err = err
	}
}

// reject is fail with a message.
func (q *query) reject(name, message string) { q.fail(name, &dmarcd.InvalidError{Message: message}) }

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
func (q *query) part() (limit int, after string) {
	after, ok := strings.CutPrefix(q.Get("after"), q.list)
	if q.Get("after") != "" && (!ok || after == "") {
		q.reject("after", "The parameter after is no cursor of this list. Use the member next of its page before, or leave it out to begin with the first page.")
	}
	return q.limit(defaultPage), after
}

// cursor is part for a list ordered by time.
func (q *query) cursor() (limit int, after service.Cursor) {
	limit, text := q.part()
	if text != "" {
		var err error
		after.At, after.ID, err = wire.ParseCursor(text)
		q.fail("after", err)
	}
	return limit, after
}

// domain returns the parameter domain, "" if absent.
func (q *query) domain() string {
	if !q.Has("domain") {
		return ""
	}
	name, err := dmarcd.ParseName(q.Get("domain"))
	q.fail("domain", err)
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

// flag returns a parameter that is true or false, false if absent.
func (q *query) flag(name string) bool { return word(q, name, "true", "false") == "true" }

// storable reports whether a text can be in the database. Others must not be queried:
// PostgreSQL rejects them.
func storable(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

// reserveRows reserves memory for a response with that many rows, and waits for a slot to read and
// encode them. It returns the error of the query, if any.
func (c *call) reserveRows(rows int) (err error) {
	if c.query.err != nil {
		return c.query.err
	}
	if c.release, err = c.service.ReserveRows(c.r.Context(), rows); err != nil {
		return err
	}
	return c.awaitTurn(rows)
}

// awaitTurn waits for a slot to read and encode that many rows, unless they are few. The slot is
// released before they are written.
func (c *call) awaitTurn(rows int) (err error) {
	if rows > defaultPage+1 { // one more shows whether there is a next page
		c.endTurn, err = c.service.ReadTurn(c.r.Context())
	}
	return err
}

// maxBody is the size limit of a JSON body.
const maxBody = 64 << 10

// object is the JSON object in a body. It keeps the errors, which the caller checks after it has
// read the members: values may be zero until then.
type object struct {
	members map[string]json.RawMessage
	err     error
}

// readObject reads the JSON object in the body. The last of repeated members wins. Errors name the
// expected member and show an example.
func readObject(c *call, member, example string) *object {
	return readObjectOf(c, maxBody, member, example)
}

// readObjectOf is readObject for a body of at most so many bytes.
func readObjectOf(c *call, most int64, member, example string) *object {
	// Ignore invalid parameters: JSON has none.
	media, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) || media != "application/json" ||
		c.r.Header.Get("Content-Encoding") != "" {
		return &object{err: errMediaType}
	}
	tooLarge := errBodyTooLarge
	if most == maxBulkBody {
		tooLarge = errBulkTooLarge
	}
	if c.r.ContentLength > most {
		return &object{err: tooLarge}
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, most))
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return &object{err: tooLarge}
	case err != nil, !utf8.Valid(body), !json.Valid(body):
		return &object{err: &failure{http.StatusBadRequest, "invalid_json", "The body must be one JSON object in UTF-8, such as " + example + "."}}
	}
	var o object
	if err := json.Unmarshal(body, &o.members); err != nil || o.members == nil {
		o.err = &dmarcd.InvalidError{Message: `The body must be a JSON object with the member "` + member + `".`}
	}
	o.err = cmp.Or(o.err, c.route.unknownMember(o.members))
	return &o
}

// reject adds an error about a member. Nothing is said about the members of a body that is no
// object.
func (o *object) reject(member, message string) {
	if o.members != nil {
		o.err = alsoInvalid(o.err, &dmarcd.InvalidError{Field: member, Message: message})
	}
}

// accept adds the error of a value of a member, if any.
func (o *object) accept(member string, err error) {
	var invalid *dmarcd.InvalidError
	if o.members != nil && errors.As(err, &invalid) {
		o.err = alsoInvalid(o.err, &dmarcd.InvalidError{Field: member, Code: invalid.Code, Message: invalid.Message})
	}
}

// has reports whether the object has the member.
func (o *object) has(name string) bool { return o.members[name] != nil }

// states reports whether the object has the member, and it is not null.
func (o *object) states(name string) bool { return o.has(name) && string(o.members[name]) != "null" }

// text returns a member that must be a string.
func (o *object) text(name string) string { return required[string](o, name, "a string") }

// number returns a member that is a whole number.
func (o *object) number(name string) int64 { return required[int64](o, name, "a whole number") }

// flag returns a member that must be true or false.
func (o *object) flag(name string) bool { return required[bool](o, name, "true or false") }

// required returns a member that must have the type T; kind is its name in the error.
func required[T any](o *object, name, kind string) (value T) {
	var given *T
	if err := json.Unmarshal(o.members[name], &given); err != nil || given == nil {
		o.reject(name, `The member "`+name+`" is required and must be `+kind+`.`)
		return value
	}
	return *given
}

// day returns a member that is a day, nil if missing or null.
func (o *object) day(name string) *dmarcd.Day {
	if !o.states(name) {
		return nil
	}
	day, err := dmarcd.ParseDay(o.text(name))
	if err != nil {
		o.reject(name, `The member "`+name+`" must be a day such as 2026-11-15.`)
	}
	return &day
}

// time returns a member that is a time, zero if missing or null.
func (o *object) time(name string) time.Time {
	if !o.states(name) {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, o.text(name))
	if err != nil {
		o.reject(name, `The member "`+name+`" must be a time such as 2026-11-15T09:30:00Z, or null.`)
	}
	return at
}

// texts returns a member that is a list of strings, nil if missing or null.
func texts[T ~string](o *object, name string) []T {
	list, ok := textList[T](o.members[name])
	if o.has(name) && !ok {
		o.reject(name, `The member "`+name+`" must be a list of strings, or null.`)
	}
	return list
}

// texts returns a member that must be a list of strings.
func (o *object) texts(name string) []string {
	list, ok := textList[string](o.members[name])
	if !ok || list == nil {
		o.reject(name, `The member "`+name+`" is required and must be an array of strings.`)
	}
	return list
}

// textList decodes a list of strings, none of which is null. The list null is nil.
func textList[T ~string](encoded json.RawMessage) (list []T, ok bool) {
	var items []*T
	if json.Unmarshal(encoded, &items) != nil || slices.Contains(items, nil) {
		return nil, false
	}
	if items != nil {
		list = make([]T, len(items))
	}
	for i, item := range items {
		list[i] = *item
	}
	return list, true
}

// optional returns a member, nil if it is missing.
func optional[T any](o *object, name string, read func(*object, string) T) *T {
	if !o.has(name) {
		return nil
	}
	return new(read(o, name))
}
