package api

import (
	"github.com/dmarcd/dmarcd/internal/wire"
)

// defaultHits is how many hits of a kind a client gets that does not say.
const defaultHits = 10

// search finds domains, senders and reports.
func (a *API) search(c *call) error {
	values, err := query(c)
	if err != nil {
		return err
	}
	limit := defaultHits
	if values.Has("limit") {
		if limit, err = readLimit(values.Get("limit")); err != nil {
			return err
		}
	}
	hits, err := c.service.Search(c.r.Context(), values.Get("q"), limit)
	if err != nil {
		return err
	}
	page := wire.Page[wire.Hit]{Items: []wire.Hit{}}
	for _, hit := range hits {
		page.Items = append(page.Items, wire.NewHit(string(hit.Kind), hit.Key, hit.Title, hit.Detail))
	}
	writeCacheable(c, page)
	return nil
}
