package api

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
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
		if after, err = parseCursor(text); err != nil {
			return 0, after, &dmarcd.InvalidError{Field: "after", Message: "The parameter after must be the member next of the page before."}
		}
	}
	return limit, after, nil
}

// formatCursor writes a place in a list as clients are to hand it back.
func formatCursor(c store.Cursor) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d.%d", c.At.Unix(), c.ID))
}

func parseCursor(text string) (store.Cursor, error) {
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return store.Cursor{}, err
	}
	before, after, _ := strings.Cut(string(decoded), ".")
	at, err := strconv.ParseInt(before, 10, 64)
	if err != nil {
		return store.Cursor{}, err
	}
	id, err := strconv.ParseInt(after, 10, 64)
	return store.Cursor{At: time.Unix(at, 0), ID: id}, err
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
			next := formatCursor(place(read[limit-1]))
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
