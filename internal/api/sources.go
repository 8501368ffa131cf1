package api

import (
	"cmp"

	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// listSources lists the senders of the team's domains, most messages first.
func (a *API) listSources(c *call) error {
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
	list, err := mail.Sources(c.r.Context(), insight.Query{Group: cmp.Or(group, insight.GroupNetwork), After: after, Limit: limit, Assess: true})
	mail.Close() // release memory before a slow write
	if err != nil {
		return err
	}
	page := wire.Page[wire.Source]{Items: []wire.Source{}}
	for _, s := range list.Sources {
		item := wire.NewSource(s.Key, s.Name, s.Detail, s.Counts, s.First, s.Last, s.Seen)
		if a := s.Assessment; a != nil {
			item.Assess(a.Class, a.Evidence, a.Cause, a.Fix)
		}
		page.Items = append(page.Items, item)
	}
	if list.Next != "" {
		page.Next = &list.Next
	}
	return c.writeCacheable(page)
}
