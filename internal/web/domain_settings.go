package web

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

type domainSettingsView struct {
	domainView
	Purpose ui.Form
	Tags    ui.Form
	Delete  ui.Form
	// Park marks the domain as not used for mail, or removes the mark.
	Park ui.Action
	// Managed are the managed records, which end with the domain.
	Managed []endingRecord
}

// endingRecord is a managed record, and what happens to its name once it ends.
type endingRecord struct {
	Name   string
	State  ui.Cell
	Ending string
}

// endingRecords returns the managed records of a domain.
func endingRecords(c *site.Call, domain string) ([]endingRecord, error) {
	records, err := c.Team.ManagedRecords(c.R.Context(), domain)
	list := make([]endingRecord, len(records))
	for i := range records {
		state, _ := describeManaged(records[i].Owner, &records[i])
		list[i] = endingRecord{records[i].Owner, state, records[i].Kind.Ending()}
		if records[i].Target == "" {
			list[i].Ending = "The record stays at the DNS server of the domain as it is."
		}
	}
	return list, err
}

func purposeForm(domain dmarcd.Domain) ui.Form {
	value := cmp.Or(string(domain.Purpose), "none")
	return ui.Form{Path: domainPath(domain.Name) + "/purpose", Method: "post", Submit: "Save purpose", Fields: []ui.Field{{
		Name: "purpose", Label: "Purpose", Type: "select", Value: value,
		Hint: "What the domain is used for. The advice does not depend on it.",
		Choices: []ui.Choice{
			{Value: "none", Label: "not declared"},
			{Value: string(dmarcd.PurposeBusiness), Label: "business"},
			{Value: string(dmarcd.PurposePersonal), Label: "personal"},
			{Value: string(dmarcd.PurposeEducation), Label: "education"},
			{Value: string(dmarcd.PurposeNonprofit), Label: "nonprofit"},
		},
	}}}
}

func (s *Web) domainSettings(c *site.Call) error {
	return s.showDomainSettings(c, http.StatusOK, func(*domainSettingsView) {})
}

// showDomainSettings renders the page after edit has added errors.
func (s *Web) showDomainSettings(c *site.Call, status int, edit func(*domainSettingsView)) error {
	page, head, err := s.domainPage(c, "domain_settings", "Settings")
	if err != nil {
		return err
	}
	park := ui.Action{Path: domainPath(head.Head.Name) + "/parked", Label: "Mark as not used for mail", Name: "parked", Value: "yes"}
	if head.Head.Parked {
		park.Label, park.Value = "Mark as used for mail", "no"
	}
	managed, err := endingRecords(c, head.Head.Name)
	if err != nil {
		return err
	}
	view := domainSettingsView{domainView: head, Purpose: purposeForm(head.Head.Domain), Tags: tagsForm(head.Head.Name, head.Head.Tags), Delete: domainDeletion(head.Head.Name), Park: park, Managed: managed}
	edit(&view)
	return c.Render(status, page, view)
}

func (s *Web) setPurpose(c *site.Call, domain dmarcd.Domain, written url.Values) error {
	purpose, err := dmarcd.ParsePurpose(written.Get("purpose"))
	if err == nil {
		err = c.Team.SetPurpose(c.R.Context(), domain.Name, purpose)
	}
	if err != nil {
		return site.Again(purposeForm(domain), written, err, func(form ui.Form) error {
			return s.showDomainSettings(c, http.StatusUnprocessableEntity, func(v *domainSettingsView) { v.Purpose = form })
		})
	}
	return c.Done(domainPath(domain.Name)+"/settings", "purpose-set")
}

// setParked marks a domain as not used for mail, or removes the mark.
func (s *Web) setParked(c *site.Call, domain dmarcd.Domain, written url.Values) error {
	parked, done := written.Get("parked") == "yes", "not-parked"
	if parked {
		done = "parked"
	}
	return c.Finish(c.Team.SetParked(c.R.Context(), domain.Name, parked), domainPath(domain.Name)+"/settings", done)
}

func domainDeletion(name string) ui.Form {
	return ui.Deletion(domainPath(name)+"/delete", "domain", name)
}

func (s *Web) deleteDomain(c *site.Call, domain dmarcd.Domain, written url.Values) error {
	if written.Get("confirm") != domain.Name {
		err := &dmarcd.InvalidError{Field: "confirm", Message: "The name does not match. Enter the name of the domain to delete it."}
		return site.Again(domainDeletion(domain.Name), written, err, func(form ui.Form) error {
			return s.showDomainSettings(c, http.StatusUnprocessableEntity, func(v *domainSettingsView) { v.Delete = form })
		})
	}
	return c.Finish(c.Team.DeleteDomain(c.R.Context(), domain.Name), Prefix+"/", "domain-deleted")
}

func tagsForm(domain string, tags []string) ui.Form {
	return ui.Form{Path: domainPath(domain) + "/tags", Method: "post", Submit: "Save tags", Fields: []ui.Field{{
		Name: "tags", Label: "Tags", Type: "text", Value: strings.Join(tags, " "), Autocomplete: "off", Placeholder: "shop eu",
		Hint: "Separate tags with spaces. You can filter the overview, senders, changes and reports by tag.",
	}}}
}

func (s *Web) setTags(c *site.Call, domain dmarcd.Domain, written url.Values) error {
	words := strings.FieldsFunc(written.Get("tags"), func(r rune) bool { return r == ',' || r == ' ' })
	if _, err := c.Team.SetTags(c.R.Context(), domain.Name, words); err != nil {
		return site.Again(tagsForm(domain.Name, nil), written, err, func(form ui.Form) error {
			return s.showDomainSettings(c, http.StatusUnprocessableEntity, func(v *domainSettingsView) { v.Tags = form })
		})
	}
	return c.Done(domainPath(domain.Name)+"/settings", "tags-set")
}
