package ui

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/dmarcd/dmarcd/internal/phrase"
)

// Pager is the navigation of a paginated list.
type Pager struct {
	// Text describes the current page.
	Text string
	// First, Previous and Next are URLs, "" if there is none.
	First, Previous, Next string
}

// NumberedPager returns a pager for a list of known length.
func NumberedPager(path string, query url.Values, page, perPage, total int) Pager {
	from := (page-1)*perPage + 1
	to := min(page*perPage, total)
	if total <= perPage && page == 1 {
		return Pager{}
	}
	p := Pager{Text: fmt.Sprintf("%s–%s of %s", phrase.Number(int64(from)), phrase.Number(int64(to)), phrase.Number(int64(total)))}
	if from > total {
		p.Text = "This page is past the end of the list."
	}
	if page > 1 {
		p.First = WithQuery(path, query, "page", "")
		p.Previous = WithQuery(path, query, "page", strconv.Itoa(page-1))
	}
	if to < total && from <= total {
		p.Next = WithQuery(path, query, "page", strconv.Itoa(page+1))
	}
	return p
}

// CursorPager returns a pager for a list with cursors.
func CursorPager(path string, query url.Values, next string) Pager {
	var p Pager
	if query.Get("after") != "" {
		p.First = WithQuery(path, query, "after", "")
	}
	if next != "" {
		p.Next = WithQuery(path, query, "after", next)
	}
	return p
}
