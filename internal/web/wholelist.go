package web

import "github.com/dmarcd/dmarcd/internal/wire"

// maxCSVRows bounds a table as a file.
const maxCSVRows = 100_000

// next returns the cursor of the following part of a list, "" at the end.
func next[T any](page wire.Page[T]) string {
	if page.Next == nil {
		return ""
	}
	return *page.Next
}

// wholeList reads a list from its beginning to its end, for a file: what a page
// shows is a part of it.
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
