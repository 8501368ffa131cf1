package api

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd"
)

// maxBody is the size limit of a JSON body.
const maxBody = 64 << 10

// object is the JSON object in a body. It keeps the first error, which the caller checks after it
// has read the members: all values after it are zero.
type object struct {
	members map[string]json.RawMessage
	err     error
}

// readObject reads the JSON object in the body; the last of a repeated member counts. Its errors
// name the expected member and show an example.
func readObject(c *call, member, example string) *object {
	// Ignore invalid parameters: JSON has none.
	media, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) || media != "application/json" ||
		c.r.Header.Get("Content-Encoding") != "" {
		return &object{err: errMediaType}
	}
	if c.r.ContentLength > maxBody {
		return &object{err: errBodyTooLarge}
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return &object{err: errBodyTooLarge}
	case err != nil, !utf8.Valid(body), !json.Valid(body):
		return &object{err: &failure{http.StatusBadRequest, "invalid_json", "The body must be one JSON object in UTF-8, such as " + example + "."}}
	}
	var o object
	if err := json.Unmarshal(body, &o.members); err != nil || o.members == nil {
		o.reject(member, `The body must be a JSON object with the member "`+member+`".`)
	}
	return &o
}

// reject sets the error, unless there is one.
func (o *object) reject(member, message string) {
	if o.err == nil {
		o.err = &dmarcd.InvalidError{Field: member, Message: message}
	}
}

// has reports whether there is such a member.
func (o *object) has(name string) bool { return o.members[name] != nil }

// states reports whether there is such a member, and it is not null.
func (o *object) states(name string) bool { return o.has(name) && string(o.members[name]) != "null" }

// text returns a member that must be a string.
func (o *object) text(name string) string { return required[string](o, name, "a string") }

// number returns a member that is a whole number.
func (o *object) number(name string) int64 { return required[int64](o, name, "a whole number") }

// flag returns a member that must be true or false.
func (o *object) flag(name string) bool { return required[bool](o, name, "true or false") }

// required returns a member that must be of a type, which kind names.
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

// texts returns a member that is a list of strings, nil if missing or null.
func texts[T ~string](o *object, name string) (list []T) {
	if o.has(name) && json.Unmarshal(o.members[name], &list) != nil {
		o.reject(name, `The member "`+name+`" must be a list of strings, or null.`)
	}
	return list
}

// optional returns a member, nil if it is missing.
func optional[T any](o *object, name string, read func(*object, string) T) *T {
	if !o.has(name) {
		return nil
	}
	return new(read(o, name))
}
