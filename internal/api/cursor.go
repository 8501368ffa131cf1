package api

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// defaultPage is how many items of a list a client gets that does not say.
const defaultPage = 100

// readCursor returns the part of a list that a request asks for: how many items,
// and after which.
func readCursor(c *call) (limit int, after store.Cursor, err error) {
	values, err := query(c)
	if err != nil {
		return 0, after, err
	}
	limit = defaultPage
	if values.Has("limit") {
		if limit, err = readLimit(values.Get("limit")); err != nil {
			return 0, after, err
		}
	}
	if text := values.Get("after"); text != "" {
		var at int64
		decoded, err := base64.RawURLEncoding.DecodeString(text)
		if err == nil {
			_, err = fmt.Sscanf(string(decoded), "%d.%d", &at, &after.ID)
		}
		if err != nil {
			return 0, after, &dmarcd.InvalidError{Field: "after", Message: "The parameter after must be the member next of the page before."}
		}
		after.At = time.Unix(at, 0)
	}
	return limit, after, nil
}

// readLimit reads the size of a page.
func readLimit(text string) (int, error) {
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > maxPage {
		return 0, &dmarcd.InvalidError{Field: "limit", Message: "The parameter limit must be a whole number from 1 to 1000."}
	}
	return limit, nil
}

// newPage makes a page of what was read, which is one item more than the page
// has if there is a next one.
func newPage[A, B any](read []A, limit int, place func(A) store.Cursor, shape func(A) (B, error)) (wire.Page[B], error) {
	page := wire.Page[B]{Items: []B{}}
	for i, item := range read {
		if i == limit {
			last := place(read[limit-1])
			next := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d.%d", last.At.Unix(), last.ID))
			page.Next = &next
			break
		}
		shaped, err := shape(item)
		if err != nil {
			return page, err
		}
		page.Items = append(page.Items, shaped)
	}
	return page, nil
}
