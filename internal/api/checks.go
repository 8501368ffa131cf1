package api

import (
	"errors"

	"github.com/dmarcd/dmarcd"
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
	if errors.Is(err, dmarcd.ErrNotFound) {
		return errNotCheckedYet
	}
	if err != nil {
		return err
	}
	writeCacheable(c, wire.NewKeptCheck(latest))
	return nil
}

func (a *API) listChecks(c *call) error {
	limit, after, err := readCursor(c)
	if err != nil {
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
	page, err := wire.NewPage(checks, limit, func(check dmarcd.StoredCheck) string {
		return wire.FormatCursor(check.FirstAt, int64(check.ID))
	}, func(check dmarcd.StoredCheck) (wire.StoredCheck, error) { return wire.NewKeptCheck(check), nil })
	if err != nil {
		return err
	}
	writeCacheable(c, page)
	return nil
}
