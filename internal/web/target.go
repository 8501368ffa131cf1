package web

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// targetView is the page of the DNS server to which the records of a domain are published.
type targetView struct {
	domainView
	// Target is nil for none.
	Target *dmarcd.PublishTarget
	Form   ui.Form
	Remove ui.Action
}

func targetPath(domain string) string { return domainPath(domain) + "/target" }

func targetForm(domain string) ui.Form {
	return ui.Form{Path: targetPath(domain), Method: "post", Submit: "Test and save", Fields: []ui.Field{
		{Name: "kind", Label: "Kind", Type: "select", Value: string(dmarcd.TargetRFC2136), Choices: []ui.Choice{
			{Value: string(dmarcd.TargetRFC2136), Label: "Dynamic updates (RFC 2136)"}, {Value: string(dmarcd.TargetPowerDNS), Label: "API of PowerDNS"},
		}},
		{Name: "server", Label: "Server", Type: "text", Required: true, Autocomplete: "off", Placeholder: "ns1.example.com", Hint: "Add the port if it is not 53. For PowerDNS, enter the URL of its API: https://dns.example.com:8081."},
		{Name: "zone", Label: "Zone", Type: "text", Autocomplete: "off", Placeholder: domain, Hint: "Leave empty for the zone of the domain."},
		{Name: "key", Label: "Key", Type: "password", Required: true, Autocomplete: "off", Hint: "TSIG: [algorithm:]name:secret. PowerDNS: the setting api-key. It is stored encrypted, and never shown again."},
	}}
}

func (s *Web) recordTarget(c *site.Call) error {
	return s.showTarget(c, http.StatusOK, targetForm)
}

func (s *Web) showTarget(c *site.Call, status int, form func(domain string) ui.Form) error {
	page, head, err := s.domainPage(c, "domain_target", managedTitle)
	if err != nil {
		return err
	}
	name := head.Head.Name
	view := targetView{
		domainView: head, Form: form(name),
		Remove: ui.Action{Label: "Remove", Path: targetPath(name) + "/remove", Danger: true, Question: "Remove the server and its key? What is published there stays."},
	}
	target, err := c.Team.RecordTarget(c.R.Context(), name)
	if err == nil {
		view.Target = &target
	} else if !errors.Is(err, dmarcd.ErrNotFound) {
		return err
	}
	return c.Render(status, page, view)
}

func (s *Web) setTarget(c *site.Call, domain dmarcd.Domain, written url.Values) error {
	wanted := dmarcd.PublishTarget{Kind: dmarcd.TargetKind(written.Get("kind")), Server: written.Get("server"), Zone: written.Get("zone")}
	_, err := c.Team.SetRecordTarget(c.R.Context(), domain.Name, wanted, written.Get("key"))
	if errors.Is(err, dmarcd.ErrInvalid) {
		return site.Again(targetForm(domain.Name), written, err, func(form ui.Form) error {
			return s.showTarget(c, http.StatusUnprocessableEntity, func(string) ui.Form { return form })
		})
	}
	return c.Finish(err, targetPath(domain.Name), "target-set")
}

func (s *Web) removeTarget(c *site.Call, domain dmarcd.Domain, _ url.Values) error {
	return c.Finish(c.Team.RemoveRecordTarget(c.R.Context(), domain.Name), targetPath(domain.Name), "target-removed")
}
