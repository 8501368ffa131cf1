package web

import (
	"errors"
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

type newDomainView struct{ Form ui.Form }

func newDomainFrame() Page {
	return Page{
		Template: "newdomain", Title: "Add a domain", Section: "Overview",
		Trail: []ui.Link{{Text: "Overview", Href: Prefix + "/"}},
	}
}

func domainForm() ui.Form {
	return ui.Form{Path: Prefix + "/domains/new", Method: "post", Submit: "Add the domain", Fields: []ui.Field{{
		Name: "domain", Label: "Domain", Type: "text", Required: true, Autocomplete: "off",
		Placeholder: "example.com", Hint: "The part behind the @ of the sender's address, without www.",
	}}}
}

func (s *Web) newDomainPage(c *call) error {
	return c.render(http.StatusOK, newDomainFrame(), newDomainView{domainForm()})
}

func (s *Web) addDomain(c *call) error {
	written, err := c.form()
	if err != nil {
		return err
	}
	domain, err := c.team.AddDomain(c.r.Context(), written.Get("domain"))
	switch {
	case errors.Is(err, dmarcd.ErrConflict):
		err = &dmarcd.InvalidError{Field: "domain", Message: "The team has this domain already. Look for it in the overview."}
	case errors.Is(err, dmarcd.ErrForbidden) && errors.As(err, new(*dmarcd.QuotaError)):
		err = &dmarcd.InvalidError{Field: "domain", Message: "The team has as many domains as it may have. Delete one, or ask the operator for more."}
	}
	if err != nil {
		form, ok := domainForm().Filled(written, err)
		if !ok {
			return err
		}
		return c.render(http.StatusUnprocessableEntity, newDomainFrame(), newDomainView{form})
	}
	return c.done(domainPath(domain.Name)+"/setup", "domain-added")
}
