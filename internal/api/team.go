package api

import "github.com/dmarcd/dmarcd/internal/wire"

// getMe describes the token of the request, its team and the server.
func (a *API) getMe(c *call) error {
	team, err := c.service.Self(c.r.Context())
	if err != nil {
		return err
	}
	quota, used, err := c.service.Quota(c.r.Context())
	if err != nil {
		return err
	}
	return c.writeCacheable(wire.NewMe(team, c.token, quota, used, a.options.Version))
}
