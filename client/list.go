package client

import (
	"context"
	"iter"
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// Period selects the days From to To, both included. A zero value leaves that end open.
type Period struct {
	From dmarcd.Day `query:"from"`
	To   dmarcd.Day `query:"to"`
}

// list returns the items of all pages, and reads each page when it is needed.
func list[T any](ctx context.Context, c *Client, filter any, path ...string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		r := call{method: http.MethodGet, path: path, query: values(filter)}
		for {
			page, err := do[wire.Page[T]](ctx, c, r)
			if err != nil {
				yield(*new(T), err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if page.Next == nil {
				return
			}
			r.query.Set("after", *page.Next)
		}
	}
}

// Collect returns all items of a list, or the first error.
func Collect[T any](items iter.Seq2[T, error]) ([]T, error) {
	all := []T{}
	for item, err := range items {
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}
