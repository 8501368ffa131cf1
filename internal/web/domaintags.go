package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// tagChoice is the selected tag and all available tags.
type tagChoice struct {
	Value   string
	Choices []ui.Choice // empty if no domain of the team has a tag
}

// tags returns the available tags for the filter of a page.
func (c *call) tags() (tagChoice, error) {
	all, err := c.team.Tags(c.r.Context())
	if err != nil || len(all) == 0 && c.tag == "" {
		return tagChoice{}, err
	}
	choice := tagChoice{Value: c.tag, Choices: []ui.Choice{{Value: "", Label: "any tag"}}}
	known := false
	for _, tag := range all {
		choice.Choices = append(choice.Choices, ui.Choice{Value: tag.Tag, Label: tag.Tag})
		known = known || tag.Tag == c.tag
	}
	if c.tag != "" && !known {
		choice.Choices = append(choice.Choices, ui.Choice{Value: c.tag, Label: c.tag})
	}
	return choice, nil
}

// fields returns a select field, or none if there is nothing to choose.
func (t tagChoice) fields() []ui.Field {
	if len(t.Choices) == 0 {
		return nil
	}
	return []ui.Field{{Name: "tag", Label: "Tag", Type: "select", Value: t.Value, Choices: t.Choices}}
}

// tagLinks are links to the overview of the domains with each tag.
func (c *call) tagLinks(tags []string) []ui.Link {
	links := make([]ui.Link, len(tags))
	for i, tag := range tags {
		links[i] = ui.Link{Text: tag, Href: c.link(Prefix+"/", "tag", tag)}
	}
	return links
}

func tagsForm(domain string, tags []string) ui.Form {
	return ui.Form{Path: domainPath(domain) + "/tags", Method: "post", Submit: "Save tags", Fields: []ui.Field{{
		Name: "tags", Label: "Tags", Type: "text", Value: strings.Join(tags, " "), Autocomplete: "off", Placeholder: "shop eu",
		Hint: "Separate tags with spaces. You can filter the overview, senders, changes and reports by tag.",
	}}}
}

func (s *Web) setTags(c *call, domain dmarcd.Domain, written url.Values) error {
	words := strings.FieldsFunc(written.Get("tags"), func(r rune) bool { return r == ',' || r == ' ' })
	if _, err := c.team.SetTags(c.r.Context(), domain.Name, words); err != nil {
		return again(tagsForm(domain.Name, nil), written, err, func(form ui.Form) error {
			return s.showDomainSettings(c, http.StatusUnprocessableEntity, func(v *domainSettingsView) { v.Tags = form })
		})
	}
	return c.done(domainPath(domain.Name)+"/settings", "tags-set")
}

// askedTag returns the tag in a query, "" if it is invalid.
func askedTag(written string) string {
	tag, err := dmarcd.ParseTag(written)
	if err != nil {
		return ""
	}
	return tag
}
