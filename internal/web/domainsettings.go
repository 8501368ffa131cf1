package web

import (
	"cmp"
	"net/http"
	"net/url"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

type domainSettingsView struct {
	domainView
	Purpose ui.Form
	Tags    ui.Form
}

func purposeForm(head DomainHead) ui.Form {
	value := cmp.Or(string(head.Purpose), "none")
	return ui.Form{Path: domainPath(head.Name) + "/purpose", Method: "post", Submit: "Save purpose", Fields: []ui.Field{{
		Name: "purpose", Label: "Purpose", Type: "select", Value: value,
		Hint: "What the domain is used for: domain_usage_purpose in the API.",
		Choices: []ui.Choice{
			{Value: "none", Label: "not declared"},
			{Value: string(dmarcd.PurposeBusiness), Label: "business"},
			{Value: string(dmarcd.PurposePersonal), Label: "personal"},
			{Value: string(dmarcd.PurposeEducation), Label: "education"},
			{Value: string(dmarcd.PurposeNonprofit), Label: "nonprofit"},
		},
	}}}
}

func (s *Web) domainSettings(c *call) error {
	page, head, err := s.domainPage(c, "domainsettings", "Settings")
	if err != nil {
		return err
	}
	return c.render(http.StatusOK, page, domainSettingsView{head, purposeForm(head.Head), tagsForm(head.Head)})
}

func (s *Web) setPurpose(c *call, written url.Values) error {
	page, head, err := s.domainPage(c, "domainsettings", "Settings")
	if err != nil {
		return err
	}
	purpose, err := dmarcd.ParsePurpose(written.Get("purpose"))
	if err == nil {
		err = c.team.SetPurpose(c.r.Context(), head.Head.Name, purpose)
	}
	if err != nil {
		return again(purposeForm(head.Head), written, err, func(form ui.Form) error {
			return c.render(http.StatusUnprocessableEntity, page, domainSettingsView{head, form, tagsForm(head.Head)})
		})
	}
	return c.done(domainPath(head.Head.Name)+"/settings", "purpose-set")
}

// deleteDomain requires the name as confirmation: the data cannot be restored.
func (s *Web) deleteDomain(c *call, written url.Values) error {
	domain, err := c.team.Domain(c.r.Context(), c.params.Get("domain"))
	if err != nil {
		return err
	}
	if written.Get("confirm") != domain.Name {
		return &dmarcd.InvalidError{Field: "confirm", Message: "The name does not match. Go back, and enter the name of the domain to delete it."}
	}
	return c.finish(c.team.DeleteDomain(c.r.Context(), domain.Name), Prefix+"/", "domain-deleted")
}
