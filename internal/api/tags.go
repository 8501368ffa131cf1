package api

import (
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// tagged returns the use cases of the team, narrowed to the domains with the tag that the
// query names, if it names one.
func tagged(c *call) *service.Team {
	if !c.query.Has("tag") {
		return c.service
	}
	tag, err := dmarcd.ParseTag(c.query.Get("tag"))
	if err != nil {
		c.query.reject("tag", "The parameter tag must be a tag: letters, digits, hyphens, underscores and dots.")
	}
	return c.service.Tagged(tag)
}

// listTags lists the tags of the team's domains.
func (a *API) listTags(c *call) error {
	tags, err := c.service.Tags(c.r.Context())
	if err != nil {
		return err
	}
	page := wire.Page[wire.Tag]{Items: []wire.Tag{}}
	for _, t := range tags {
		page.Items = append(page.Items, wire.Tag{Tag: t.Tag, Domains: t.Domains})
	}
	return c.writeCacheable(page)
}

func (a *API) getTags(c *call) error {
	tags, err := c.service.DomainTags(c.r.Context(), c.params.Get("domain"))
	if err != nil {
		return missing(err, errNoSuchDomain)
	}
	return c.writeCacheable(wire.NewTags(tags))
}

func (a *API) setTags(c *call) error {
	body := readObject(c, "tags", `{"tags": ["shop", "eu"]}`)
	tags := required[[]string](body, "tags", "an array of strings")
	if body.err != nil {
		return body.err
	}
	tags, err := c.service.SetTags(c.r.Context(), c.params.Get("domain"), tags)
	if err != nil {
		return missing(err, errNoSuchDomain)
	}
	return c.writeJSON(http.StatusOK, wire.NewTags(tags))
}
