package api

import (
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

const tokenExample = `{"name": "deployment", "scope": "write", "expires_at": "2027-11-15T00:00:00Z", "networks": ["192.0.2.0/24"]}`

func (a *API) createToken(c *call) error {
	body := readObject(c, "scope", tokenExample)
	wanted := service.NewToken{ExpiresAt: body.time("expires_at")}
	if body.has("name") {
		wanted.Name = body.text("name")
	}
	var err error
	if body.states("networks") {
		wanted.Networks, err = dmarcd.ParseTokenNetworks(texts[string](body, "networks"))
		body.accept("networks", err)
	}
	wanted.Scope, err = dmarcd.ParseScope(body.text("scope"))
	body.accept("scope", err)
	if body.err != nil {
		return body.err
	}
	created, secret, err := c.service.CreateToken(c.r.Context(), wanted)
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusCreated, wire.NewTokenWithSecret(created, secret))
}

func (a *API) revokeToken(c *call) error {
	id, err := dmarcd.ParseTokenID(c.params.Get("id"))
	if err != nil {
		return errNoSuchToken
	}
	return c.deleted(c.service.RevokeToken(c.r.Context(), id), errNoSuchToken)
}
