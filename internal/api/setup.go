package api

import "github.com/dmarcd/dmarcd/internal/wire"

// setup returns the records to publish and whether the latest check found them. It makes no
// DNS queries.
func (a *API) setup(c *call) error {
	setup, err := c.service.Setup(c.r.Context(), c.params.Get("domain"))
	if err != nil {
		return missing(err, errNoSuchDomain)
	}
	return c.writeCacheable(wire.NewSetup(setup))
}
