// Package wire has the JSON shapes that the API and the command line share, and converts the
// types of package dmarcd to them. It does no I/O; stored JSON has its own types in store/shape.
package wire

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/dmarcd/dmarcd"
)

// timeLayout is RFC 3339 with the offset of UTC written +00:00, never Z.
const timeLayout = "2006-01-02T15:04:05-07:00"

// Time writes a moment as the interface does.
func Time(t time.Time) string { return t.UTC().Format(timeLayout) }

// optionalTime is Time, or nil for the zero time.
func optionalTime(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return new(Time(t))
}

// EscapeFormula prefixes text that a spreadsheet would evaluate as a formula with ', so that
// a hostile report cannot run one: at its start, also after blanks and quotes, and after a
// semicolon, tab or line break, where programs with other separators begin a cell.
func EscapeFormula(text string) string {
	var b strings.Builder
	copied := 0
	escape := func(at int) {
		b.WriteString(text[copied:at] + "'")
		copied = at
	}
	if text != "" && strings.ContainsRune("\t\r\n", rune(text[0])) {
		escape(0)
	}
	begin := 0 // of the cell, while only blanks and quotes follow; else -1
	for i, r := range text {
		switch {
		case strings.ContainsRune(";\t\r\n", r):
			begin = i + 1
		case begin < 0 || r == '"' || unicode.IsSpace(r):
		default:
			if strings.ContainsRune("=+-@＝＋－＠", r) {
				escape(begin)
			}
			begin = -1
		}
	}
	if copied == 0 && b.Len() == 0 {
		return text
	}
	return b.String() + text[copied:]
}

// errorCodes are the default codes of errors, by status.
var errorCodes = map[int]string{
	http.StatusBadRequest:            "bad_request",
	http.StatusUnauthorized:          "unauthorized",
	http.StatusForbidden:             "forbidden",
	http.StatusNotFound:              "no_such_resource",
	http.StatusMethodNotAllowed:      "method_not_allowed",
	http.StatusConflict:              "conflict",
	http.StatusRequestEntityTooLarge: "body_too_large",
	http.StatusUnprocessableEntity:   "invalid_input",
	http.StatusTooManyRequests:       "too_many_requests",
	http.StatusServiceUnavailable:    "temporarily_unavailable",
}

// ErrorCode returns the Dmarcd-Error code for errors that only have a status.
func ErrorCode(status int) string { return cmp.Or(errorCodes[status], "internal_error") }

// Page is a part of a list. Next is the cursor of the next page, null at the end.
type Page[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next"`
}

// NewPage returns a page of at most limit items; read has one more if there is a next page.
// position returns the cursor of an item.
func NewPage[A, B any](read []A, limit int, position func(A) string, shape func(A) B) Page[B] {
	page := Page[B]{Items: []B{}}
	for i, item := range read {
		if i == limit {
			page.Next = new(position(read[limit-1]))
			break
		}
		page.Items = append(page.Items, shape(item))
	}
	return page
}

// ErrAfter means that a cursor is invalid.
var ErrAfter = &dmarcd.InvalidError{Field: "after", Message: "The parameter after must be the member next of the page before."}

// FormatCursor encodes a position in a list ordered by time.
func FormatCursor(at time.Time, id int64) string {
	return FormatPosition(at.Unix(), strconv.FormatInt(id, 10))
}

// ParseCursor is the inverse of FormatCursor; other texts are ErrAfter.
func ParseCursor(text string) (at time.Time, id int64, err error) {
	seconds, rest, err := ParsePosition(text)
	if err != nil {
		return time.Time{}, 0, err
	}
	if id, err = strconv.ParseInt(rest, 10, 64); err != nil {
		return time.Time{}, 0, ErrAfter
	}
	return time.Unix(seconds, 0), id, nil
}

// FormatRecordCursor encodes a position in a report: after record n of a share.
func FormatRecordCursor(share, n int) string {
	return FormatPosition(int64(share), strconv.Itoa(n))
}

// ParseRecordCursor is the inverse of FormatRecordCursor; other texts are ErrAfter.
func ParseRecordCursor(text string) (share, n int, err error) {
	number, rest, err := ParsePosition(text)
	if err != nil {
		return 0, 0, err
	}
	last, err := strconv.ParseInt(rest, 10, 32)
	if err != nil || number < 0 || number > math.MaxInt32 || last < 0 {
		return 0, 0, ErrAfter
	}
	return int(number), int(last), nil
}

// FormatPosition encodes a number and a text as an opaque cursor.
func FormatPosition(number int64, text string) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d.%s", number, text))
}

// ParsePosition is the inverse of FormatPosition; other texts are ErrAfter.
func ParsePosition(position string) (number int64, text string, err error) {
	decoded, err := base64.RawURLEncoding.DecodeString(position)
	if err != nil {
		return 0, "", ErrAfter
	}
	before, text, _ := strings.Cut(string(decoded), ".")
	number, err = strconv.ParseInt(before, 10, 64)
	if err != nil {
		return 0, "", ErrAfter
	}
	return number, text, nil
}

// list converts the elements of a list. The result is never nil: JSON lists are never null.
func list[A, B any](from []A, shape func(A) B) []B {
	shapes := make([]B, len(from))
	for i, a := range from {
		shapes[i] = shape(a)
	}
	return shapes
}

// notNull replaces a nil list with an empty one: JSON lists are never null.
func notNull(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// Text is a text, null in JSON if it is absent.
type Text string

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(t))
}

// optionalText returns nil for an empty text.
func optionalText[T ~string](text T) *string {
	if text == "" {
		return nil
	}
	return new(string(text))
}
