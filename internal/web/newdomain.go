package web

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

func newDomainFrame() Page {
	return Page{
		Template: "newdomain", Title: "Add domains", Section: "Overview",
		Trail: []ui.Link{{Text: "Overview", Href: Prefix + "/"}},
	}
}

func domainForm() ui.Form {
	return ui.Form{Path: Prefix + "/domains/new", Method: "post", Submit: "Add domains", Fields: []ui.Field{{
		Name: "domain", Label: "Domains", Type: "textarea", Required: true, Autocomplete: "off",
		Placeholder: "example.com", Hint: "One domain, a list, or a zone file. URLs and email addresses are reduced to their domain.",
	}}}
}

func (s *Web) newDomainPage(c *call) error {
	return c.render(http.StatusOK, newDomainFrame(), domainForm())
}

func (s *Web) addDomain(c *call, written url.Values) error {
	names, unreadable := dmarcd.NamesIn(written.Get("domain"))
	if len(names)+len(unreadable) == 0 {
		return rejectDomains(c, written, &dmarcd.InvalidError{Field: "domain", Message: "Enter at least one domain name, such as example.com."})
	}
	if len(unreadable) > 0 {
		return rejectDomains(c, written, &dmarcd.InvalidError{Field: "domain", Message: "Not a domain name: " + strings.Join(unreadable[:min(len(unreadable), maxUnreadable)], ", ") + ". Enter names such as example.com."})
	}
	if len(names) > 1 {
		if _, err := c.team.AddDomains(c.r.Context(), names); err != nil {
			return rejectDomains(c, written, err)
		}
		return c.done(Prefix+"/", "domains-added")
	}
	domain, err := c.team.AddDomain(c.r.Context(), names[0])
	if err != nil {
		return rejectDomains(c, written, err)
	}
	return c.done(domainPath(domain.Name)+"/setup", "domain-added")
}

// maxUnreadable is the number of invalid names that an error lists.
const maxUnreadable = 5

// rejectDomains shows the form again with an error.
func rejectDomains(c *call, written url.Values, err error) error {
	switch {
	case errors.Is(err, dmarcd.ErrConflict):
		err = &dmarcd.InvalidError{Field: "domain", Message: "The team already has this domain. You find it in the overview."}
	case errors.Is(err, dmarcd.ErrForbidden) && errors.As(err, new(*dmarcd.QuotaError)):
		err = &dmarcd.InvalidError{Field: "domain", Message: "The team has reached its limit of domains. Delete one, or ask the operator for a higher limit."}
	}
	return again(domainForm(), written, err, func(form ui.Form) error {
		return c.render(http.StatusUnprocessableEntity, newDomainFrame(), form)
	})
}
