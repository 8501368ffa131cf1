package api

import (
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// listTeamSenders lists the senders that the team added or corrected.
func (a *API) listTeamSenders(c *call) error {
	senders, err := c.service.TeamSenders(c.r.Context())
	if err != nil {
		return err
	}
	return c.writeCacheable(wire.NewPage(senders, dmarcd.MaxTeamSenders, nil, wire.NewTeamSender))
}

// setTeamSender adds a sender, or replaces the one with its key.
func (a *API) setTeamSender(c *call) error {
	body := readObject(c, "name", `{"name": "Our CRM", "class": "yours", "networks": ["192.0.2.0/24"]}`)
	sender := dmarcd.TeamSender{Key: c.params.Get("key"), Name: body.text("name")}
	if body.states("class") {
		sender.Class = dmarcd.Class(body.text("class"))
	}
	networks := texts[string](body, "networks")
	sender.Hosts, sender.Domains = texts[string](body, "hosts"), texts[string](body, "domains")
	if body.err != nil {
		return body.err
	}
	sender, err := c.service.SetTeamSender(c.r.Context(), sender, networks)
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, wire.NewTeamSender(sender))
}

func (a *API) removeTeamSender(c *call) error {
	return c.deleted(c.service.RemoveTeamSender(c.r.Context(), c.params.Get("key")), errNoSuchSender)
}
