package web

import "github.com/dmarcd/dmarcd/internal/wire"

// maxCSVRows limits a downloaded table.
const maxCSVRows = 100_000

// next returns the cursor of the next page of a list, "" at the end.
func next[T any](page wire.Page[T]) string {
	if page.Next == nil {
		return ""
	}
	return *page.Next
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
