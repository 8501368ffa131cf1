package web

import (
	"time"

	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// maxCSVRows limits a downloaded table.
const maxCSVRows = 100_000

// next returns the cursor of the next page of a list, "" at the end.
func next[T any](page wire.Page[T]) string {
	if page.Next == nil {
		return ""
	}
	return *page.Next
}

// pages returns a function that reads a page of a list, newest first, after a cursor.
func pages[T any](perPage int, read func(before service.Cursor, limit int) ([]T, error), position func(T) (at time.Time, id int64)) func(after string) (wire.Page[T], error) {
	return func(after string) (page wire.Page[T], err error) {
		before, err := parseCursor(after)
		if err != nil {
			return page, err
		}
		found, err := read(before, perPage+1)
		if err != nil {
			return page, err
		}
		return wire.NewPage(found, perPage, func(item T) string { return wire.FormatCursor(position(item)) }, asItIs), nil
	}
}

// requested returns the page of a list that the request asks for, or all of it for a CSV file.
func requested[T any](c *call, table string, part func(after string) (wire.Page[T], error)) (wire.Page[T], error) {
	if !c.wantsCSV(table) {
		return part(c.r.URL.Query().Get("after"))
	}
	all, err := wholeList(part)
	return wire.Page[T]{Items: all}, err
}

// wholeList reads all pages of a list, for a download.
func wholeList[T any](part func(after string) (wire.Page[T], error)) ([]T, error) {
	var whole []T
	for after := ""; ; {
		page, err := part(after)
		if err != nil {
			return nil, err
		}
		whole = append(whole, page.Items...)
		if after = next(page); after == "" || len(whole) >= maxCSVRows {
			return whole, nil
		}
	}
}
