package api

import "github.com/dmarcd/dmarcd/internal/wire"

// setup tells which records to publish so that reports come here, and whether
// they were seen. It asks no DNS: what it says is as old as the latest check.
func (a *API) setup(c *call) error {
	setup, err := c.service.Setup(c.r.Context(), c.named)
	if err != nil {
		return missing(err, errNoSuchDomain)
	}
	writeCacheable(c, wire.NewSetup(setup))
	return nil
}
