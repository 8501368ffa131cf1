package api

import (
	"errors"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// setup tells which records to publish so that reports come here, and whether
// they were seen. It asks no DNS: what it says is as old as the latest check.
func (a *API) setup(c *call) error {
	domain, err := namedDomain(c)
	if err != nil {
		return err
	}
	var latest wire.KeptCheck
	kept, err := c.service.LatestCheck(c.r.Context(), domain)
	switch {
	case err == nil:
		if latest, err = newKeptCheck(kept); err != nil {
			return err
		}
	case !errors.Is(err, dmarcd.ErrNotFound):
		return err
	}
	address := domain.ReportAddress(a.options.ReportDomain)
	records := dnscheck.Setup(domain, a.options.ReportDomain, a.baseURL, latest.Published(address), a.options.Service.UsedAddress(c.r.Context()))
	writeCacheable(c, wire.NewSetup(domain, address, records))
	return nil
}
