package web

import (
	"net/http"

	"github.com/dmarcd/dmarcd"
)

type domainSettingsView struct {
	domainView
	Purpose Form
}

func purposeForm(head DomainHead) Form {
	value := string(head.Purpose)
	if value == "" {
		value = "none"
	}
	return Form{Path: domainPath(head.Name) + "/purpose", Method: "post", Submit: "Save the purpose", Fields: []Field{{
		Name: "purpose", Label: "Purpose", Type: "select", Value: value,
		Hint: "What the domain is used for. The API tells it as domain_usage_purpose.",
		Choices: []Choice{
			{"none", "not declared"},
			{string(dmarcd.PurposeBusiness), "business"},
			{string(dmarcd.PurposePersonal), "personal"},
			{string(dmarcd.PurposeEducation), "education"},
			{string(dmarcd.PurposeNonprofit), "nonprofit"},
		},
	}}}
}

func (s *Web) domainSettings(c *call) error {
	page, head, err := s.domainPage(c, "domainsettings", "Settings")
	if err != nil {
		return err
	}
	return c.render(http.StatusOK, page, domainSettingsView{head, purposeForm(head.Head)})
}

func (s *Web) setPurpose(c *call) error {
	written, err := c.form()
	if err != nil {
		return err
	}
	page, head, err := s.domainPage(c, "domainsettings", "Settings")
	if err != nil {
		return err
	}
	purpose, err := dmarcd.ParsePurpose(written.Get("purpose"))
	if err == nil {
		err = c.team.SetPurpose(c.r.Context(), head.Head.Name, purpose)
	}
	if err != nil {
		form, ok := purposeForm(head.Head).filled(written, err)
		if !ok {
			return err
		}
		return c.render(http.StatusUnprocessableEntity, page, domainSettingsView{head, form})
	}
	return c.done(domainPath(head.Head.Name)+"/settings", "purpose-set")
}

// deleteDomain wants the name written out: nothing brings the data back.
func (s *Web) deleteDomain(c *call) error {
	written, err := c.form()
	if err != nil {
		return err
	}
	domain, err := c.team.Domain(c.r.Context(), c.params["domain"])
	if err != nil {
		return err
	}
	if written.Get("confirm") != domain.Name {
		return &dmarcd.InvalidError{Field: "confirm", Message: "The name was not written as it is. Go back, and write the name of the domain to delete it."}
	}
	if err := c.team.DeleteDomain(c.r.Context(), domain.Name); err != nil {
		return err
	}
	return c.done(Prefix+"/", "domain-deleted")
}
