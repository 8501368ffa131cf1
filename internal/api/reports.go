package api

import (
	"errors"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func (a *API) domainSummary(c *call) error {
	days, err := readDays(c)
	if err != nil {
		return err
	}
	name, err := dmarcd.ParseName(c.named)
	if err != nil {
		return errNoSuchDomain
	}
	sum, err := c.team.DomainSummary(c.r.Context(), name, days)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return errNoSuchDomain
	}
	if err != nil {
		return err
	}
	writeCacheable(c, wire.NewSummary(sum))
	return nil
}

func (a *API) teamSummary(c *call) error {
	days, err := readDays(c)
	if err != nil {
		return err
	}
	sum, err := c.team.Summary(c.r.Context(), days)
	if err != nil {
		return err
	}
	writeCacheable(c, wire.NewSummary(sum))
	return nil
}
