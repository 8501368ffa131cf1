package wire

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
)

// Page is a part of a list. Next is the cursor of the next page, null at the end.
type Page[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next"`
}

// NewPage returns a page of at most limit items; read has one more if there is a next page.
// place returns the cursor of an item.
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
