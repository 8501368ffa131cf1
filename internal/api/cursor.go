package api

import (
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// defaultPage is the default page size.
const defaultPage = 100

// readPart returns the page size and the cursor of wire.NewPage; "" is the start.
func readPart(c *call) (limit int, after string, err error) {
	limit, err = readLimit(c, defaultPage)
	return limit, c.query.Get("after"), err
}

// readCursor is readPart for a list ordered by time.
func readCursor(c *call) (limit int, after service.Cursor, err error) {
	limit, text, err := readPart(c)
	if err == nil && text != "" {
		after.At, after.ID, err = wire.ParseCursor(text)
	}
	return limit, after, err
}

// readLimit returns the page size, or the default of the list.
func readLimit(c *call, standard int) (int, error) {
	if !c.query.Has("limit") {
		return standard, nil
	}
	limit, err := strconv.Atoi(c.query.Get("limit"))
	if err != nil || limit < 1 || limit > maxPage {
		return 0, &dmarcd.InvalidError{Field: "limit", Message: "The parameter limit must be a whole number from 1 to 1000."}
	}
	return limit, nil
}
