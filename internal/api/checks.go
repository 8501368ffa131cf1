package api

import (
	"errors"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// namedDomain returns the domain that the path names.
func namedDomain(c *call) (dmarcd.Domain, error) {
	domain, err := c.service.Domain(c.r.Context(), c.named)
	return domain, missing(err, errNoSuchDomain)
}

func (a *API) latestCheck(c *call) error {
	domain, err := namedDomain(c)
	if err != nil {
		return err
	}
	kept, err := c.service.LatestCheck(c.r.Context(), domain)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return errNotCheckedYet
	}
	if err != nil {
		return err
	}
	shape, err := wire.NewKeptCheck(kept)
	if err != nil {
		return err
	}
	writeCacheable(c, shape)
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
	page, err := wire.NewPage(checks, limit, func(k dmarcd.KeptCheck) string {
		return wire.FormatCursor(k.FirstAt, int64(k.ID))
	}, wire.NewKeptCheck)
	if err != nil {
		return err
	}
	writeCacheable(c, page)
	return nil
}
