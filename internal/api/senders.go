package api

import (
	"cmp"
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// listSenders lists the mail of the team's domains by sender, or by what the query asks for,
// most messages first.
func (a *API) listSenders(c *call) error {
	limit, after := c.query.part()
	days, group, domain := c.query.days(), word(c.query, "by", insight.Groups()...), c.query.domain()
	team := tagged(c)
	if c.query.err != nil {
		return c.query.err
	}
	mail, err := team.Mail(c.r.Context(), domain, days)
	if err != nil {
		return err
	}
	list, err := mail.List(c.r.Context(), insight.Query{Group: cmp.Or(group, insight.GroupSender), After: after, Limit: limit, Assess: true})
	mail.Close() // release memory before a slow write
	if err != nil {
		return err
	}
	page := wire.Page[wire.Sender]{Items: []wire.Sender{}}
	for _, s := range list.Rows {
		item := wire.NewSender(s.Key, s.Name, s.Detail, s.Counts, s.First, s.Last, s.Seen)
		if a := s.Assessment; a != nil {
			item.Assess(a.Class, a.Evidence, a.Cause, a.Fix)
		}
		page.Items = append(page.Items, item)
	}
	if list.Next != "" {
		page.Next = &list.Next
	}
	return writePage(c, page)
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
