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

// readRows is readPart for a list of stored rows: it reserves their memory.
func readRows(c *call) (limit int, after string, err error) {
	if limit, after, err = readPart(c); err == nil {
		err = c.reserveRows(limit)
	}
	return limit, after, err
}

// reserveRows waits until the response may have that many rows.
func (c *call) reserveRows(rows int) (err error) {
	c.release, err = c.service.ReserveRows(c.r.Context(), rows)
	return err
}

// readCursor is readRows for a list ordered by time.
func readCursor(c *call) (limit int, after service.Cursor, err error) {
	limit, text, err := readRows(c)
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
