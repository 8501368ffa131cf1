package api

import (
	"net/http"

	"github.com/dmarcd/dmarcd/internal/wire"
)

func (a *API) selfTest(c *call) error {
	answer := a.bodyRead(c.w)
	test, err := c.service.SelfTest(c.r.Context(), c.params.Get("domain"))
	answer()
	if err != nil {
		return missing(err, errNoSuchDomain)
	}
	return c.writeJSON(http.StatusOK, wire.NewSelfTest(test))
}
