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
	members, err := readObject(c, "name", `{"name": "Our CRM", "class": "yours", "networks": ["192.0.2.0/24"]}`)
	if err != nil {
		return err
	}
	sender := dmarcd.TeamSender{Key: c.params.Get("key")}
	if sender.Name, err = stringMember(members, "name"); err != nil {
		return err
	}
	if raw, given := members["class"]; given && string(raw) != "null" {
		class, err := stringMember(members, "class")
		if err != nil {
			return err
		}
		sender.Class = dmarcd.Class(class)
	}
	networks, err := listMember[string](members, "networks")
	if err != nil {
		return err
	}
	if sender.Hosts, err = listMember[string](members, "hosts"); err != nil {
		return err
	}
	if sender.Domains, err = listMember[string](members, "domains"); err != nil {
		return err
	}
	if sender, err = c.service.SetTeamSender(c.r.Context(), sender, networks); err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, wire.NewTeamSender(sender))
}

func (a *API) removeTeamSender(c *call) error {
	if err := c.service.RemoveTeamSender(c.r.Context(), c.params.Get("key")); err != nil {
		return missing(err, errNoSuchSender)
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
