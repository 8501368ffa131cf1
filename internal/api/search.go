package api

import "github.com/dmarcd/dmarcd/internal/wire"

// defaultHits is how many hits of a kind a client gets that does not say.
const defaultHits = 10

// search finds domains, senders and reports.
func (a *API) search(c *call) error {
	limit := c.query.limit(defaultHits)
	if c.query.err != nil {
		return c.query.err
	}
	hits, err := c.service.Search(c.r.Context(), c.query.Get("q"), limit)
	if err != nil {
		return err
	}
	page := wire.Page[wire.Hit]{Items: []wire.Hit{}}
	for _, hit := range hits {
		page.Items = append(page.Items, wire.NewHit(string(hit.Kind), hit.Key, hit.Title, hit.Detail))
	}
	return c.writeCacheable(page)
}
