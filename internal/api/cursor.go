package api

import (
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// defaultPage is how many items of a list a client gets that does not say.
const defaultPage = 100

// readPart returns the part of a list that a request asks for: how many items, and
// after which, as wire.NewPage wrote it; "" is the beginning.
func readPart(c *call) (limit int, after string, err error) {
	values, err := query(c)
	if err != nil {
		return 0, "", err
	}
	limit = defaultPage
	if values.Has("limit") {
		if limit, err = readLimit(values.Get("limit")); err != nil {
			return 0, "", err
		}
	}
	return limit, values.Get("after"), nil
}

// readCursor is readPart for a list that is ordered by time.
func readCursor(c *call) (limit int, after service.Cursor, err error) {
	limit, text, err := readPart(c)
	if err == nil && text != "" {
		after.At, after.ID, err = wire.ParseCursor(text)
	}
	return limit, after, err
}

// readLimit reads the size of a page.
func readLimit(text string) (int, error) {
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > maxPage {
		return 0, &dmarcd.InvalidError{Field: "limit", Message: "The parameter limit must be a whole number from 1 to 1000."}
	}
	return limit, nil
}
