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
	// Park marks the domain as not used for mail, or removes the mark.
	Park ui.Action
}

func purposeForm(domain dmarcd.Domain) ui.Form {
	value := cmp.Or(string(domain.Purpose), "none")
	return ui.Form{Path: domainPath(domain.Name) + "/purpose", Method: "post", Submit: "Save purpose", Fields: []ui.Field{{
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
	return s.showDomainSettings(c, http.StatusOK, func(*domainSettingsView) {})
}

// showDomainSettings renders the page after edit has added errors.
func (s *Web) showDomainSettings(c *call, status int, edit func(*domainSettingsView)) error {
	page, head, err := s.domainPage(c, "domainsettings", "Settings")
	if err != nil {
		return err
	}
	park := ui.Action{Path: domainPath(head.Head.Name) + "/parked", Label: "Mark as not used for mail", Name: "parked", Value: "yes"}
	if head.Head.Parked {
		park.Label, park.Value = "Mark as used for mail", "no"
	}
	view := domainSettingsView{domainView: head, Purpose: purposeForm(head.Head.Domain), Tags: tagsForm(head.Head.Name, head.Head.Tags), Park: park}
	edit(&view)
	return c.render(status, page, view)
}

func (s *Web) setPurpose(c *call, domain dmarcd.Domain, written url.Values) error {
	purpose, err := dmarcd.ParsePurpose(written.Get("purpose"))
	if err == nil {
		err = c.team.SetPurpose(c.r.Context(), domain.Name, purpose)
	}
	if err != nil {
		return again(purposeForm(domain), written, err, func(form ui.Form) error {
			return s.showDomainSettings(c, http.StatusUnprocessableEntity, func(v *domainSettingsView) { v.Purpose = form })
		})
	}
	return c.done(domainPath(domain.Name)+"/settings", "purpose-set")
}

// setParked marks a domain as not used for mail, or removes the mark.
func (s *Web) setParked(c *call, domain dmarcd.Domain, written url.Values) error {
	parked, done := written.Get("parked") == "yes", "not-parked"
	if parked {
		done = "parked"
	}
	return c.finish(c.team.SetParked(c.r.Context(), domain.Name, parked), domainPath(domain.Name)+"/settings", done)
}

// deleteDomain requires the name as confirmation: the data cannot be restored.
func (s *Web) deleteDomain(c *call, domain dmarcd.Domain, written url.Values) error {
	if written.Get("confirm") != domain.Name {
		return &dmarcd.InvalidError{Field: "confirm", Message: "The name does not match. Go back, and enter the name of the domain to delete it."}
	}
	return c.finish(c.team.DeleteDomain(c.r.Context(), domain.Name), Prefix+"/", "domain-deleted")
}
