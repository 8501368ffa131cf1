package api

import (
	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// namedDomain returns the domain of the path.
func namedDomain(c *call) (dmarcd.Domain, error) {
	domain, err := c.service.Domain(c.r.Context(), c.params.Get("domain"))
	return domain, missing(err, errNoSuchDomain)
}

func (a *API) latestCheck(c *call) error {
	domain, err := namedDomain(c)
	if err != nil {
		return err
	}
	latest, err := c.service.LatestCheck(c.r.Context(), domain)
	if err != nil {
		return missing(err, errNotCheckedYet)
	}
	return c.writeCacheable(wire.NewStoredCheck(latest))
}

func (a *API) listChecks(c *call) error {
	limit, after := c.query.cursor()
	if err := c.reserveRows(limit); err != nil {
		return err
	}
	domain, err := namedDomain(c)
	if err != nil {
		return err
	}
	checks, err := c.service.Checks(c.r.Context(), domain, after, limit+1)
	if err != nil {
		return err
	}
	return c.writeCacheable(wire.NewPage(checks, limit, func(check facts.StoredCheck) string {
		return wire.FormatCursor(check.FirstAt, int64(check.ID))
	}, wire.NewStoredCheck))
}
