package web

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
	"github.com/dmarcd/dmarcd/internal/wire"
)

const (
	toolsPath = Prefix + "/tools"
	// simulated is the field with the domain to simulate: the page has another with a domain.
	simulated = "simulated"
)

// toolsTrail is the breadcrumb trail of a tool.
func toolsTrail() []ui.Link { return []ui.Link{{Text: "Tools", Href: toolsPath}} }

type toolsView struct {
	Builders        []toolLink
	Check, Simulate ui.Form
}

// toolLink is a tool with a line about it.
type toolLink struct {
	ui.Link
	Lead string
}

// domainField asks for a domain, in a field with that name.
func domainField(path, submit, name string) ui.Form {
	return ui.Form{Path: path, Method: "get", Submit: submit, Inline: true, Fields: []ui.Field{
		{Name: name, Label: "Domain", Type: "text", Placeholder: exampleDomain, Autocomplete: "off", Required: true},
	}}
}

func toolsPage(simulate ui.Form) (site.Page, toolsView) {
	view := toolsView{Check: domainField(toolsPath+"/check", "Check", "domain"), Simulate: simulate}
	for _, b := range builders() {
		view.Builders = append(view.Builders, toolLink{ui.Link{Text: b.name, Href: b.path()}, b.lead})
	}
	return site.Page{Template: "tools", Title: "Tools", Section: "Tools"}, view
}

func (s *Web) tools(c *site.Call) error {
	page, view := toolsPage(domainField(toolsPath+"/simulate", "Simulate", simulated))
	return c.Render(http.StatusOK, page, view)
}

// simulateName leads to the simulation of a domain of the team.
func (s *Web) simulateName(c *site.Call) error {
	query := c.R.URL.Query()
	domain, err := c.Team.Domain(c.R.Context(), strings.TrimSpace(query.Get(simulated)))
	if errors.Is(err, dmarcd.ErrNotFound) {
		err = &dmarcd.InvalidError{Field: simulated, Message: "Your team has no domain with this name. Only the mail of your own domains can be simulated."}
	}
	if err != nil {
		return site.Again(domainField(toolsPath+"/simulate", "Simulate", simulated), query, err, func(form ui.Form) error {
			page, view := toolsPage(form)
			return c.Render(http.StatusUnprocessableEntity, page, view)
		})
	}
	return c.Redirect(domainPath(domain.Name) + "/policy")
}

type checkNameView struct {
	Form         ui.Form
	Domain, Lead string
	// Own is the page of a domain of the team, "" for others.
	Own string
	// Check is nil before a domain was entered.
	Check  *wire.Check
	Groups []findingGroup
	Parts  ui.Table
}

// checkName checks any domain, without storing the result.
func (s *Web) checkName(c *site.Call) error {
	const path = toolsPath + "/check"
	page := site.Page{Template: "tools_check", Title: "Check a domain", Section: "Tools", Trail: toolsTrail()}
	query := c.R.URL.Query()
	view := checkNameView{Form: domainField(path, "Check", "domain")}
	if !query.Has("domain") {
		return c.Render(http.StatusOK, page, view)
	}
	check, err := c.Team.CheckName(c.R.Context(), query.Get("domain"))
	if err != nil {
		return site.Again(view.Form, query, err, func(form ui.Form) error {
			view.Form = form
			return c.Render(http.StatusUnprocessableEntity, page, view)
		})
	}
	view.show(check, path, query)
	if _, err := c.Team.Domain(c.R.Context(), view.Domain); err == nil {
		view.Own = domainPath(view.Domain)
	} else if !errors.Is(err, dmarcd.ErrNotFound) {
		return err
	}
	page.Title = view.Domain
	return c.Render(http.StatusOK, page, view, view.Parts)
}

// show shows a check, with the conclusion first.
func (v *checkNameView) show(check facts.Check, path string, query url.Values) {
	stored := wire.StoredCheck{Check: wire.NewCheck(check)}
	v.Domain, v.Check = check.Facts.Domain, &stored.Check
	v.Form.Fields[0].Value = v.Domain
	v.Parts = seenTable(stored, ui.WithQuery(path, query, "csv", "seen"))
	if check.Next != nil {
		v.Lead = check.Next.What
	} else {
		v.Lead = "Nothing to fix."
	}
	if !check.Conclusive {
		v.Lead = "The DNS did not answer, so nothing is known about the policy: " + check.Reason + "."
	}
	stored.NextStep = nil // the groups have all findings
	v.Groups = groupFindings(stored)
}
