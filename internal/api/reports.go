package api

import "github.com/dmarcd/dmarcd/internal/wire"

func (a *API) domainSummary(c *call) error {
	days := c.query.days()
	if c.query.err != nil {
		return c.query.err
	}
	sum, err := c.service.DomainSummary(c.r.Context(), c.params.Get("domain"), days)
	if err != nil {
		return missing(err, errNoSuchDomain)
	}
	return c.writeCacheable(wire.NewSummary(sum))
}

func (a *API) teamSummary(c *call) error {
	days := c.query.days()
	if c.query.err != nil {
		return c.query.err
	}
	sum, err := c.service.Summary(c.r.Context(), days)
	if err != nil {
		return err
	}
	return c.writeCacheable(wire.NewSummary(sum))
}
