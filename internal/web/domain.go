package web

import (
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// DomainHead is what stands above every page of a domain.
type DomainHead struct {
	dmarcd.Domain
	// ReportAddress is where its reports are sent, "" where the installation has
	// no report domain.
	ReportAddress string
	// Applied is the policy that receivers apply, which for a subdomain may come
	// from the record of a domain above and in testing is one level less; ""
	// where there is none.
	Applied string
}

// domainHead returns the domain that the address of the page names.
func (c *call) domainHead() (DomainHead, error) {
	domain, err := c.team.Domain(c.r.Context(), c.params["domain"])
	if err != nil {
		return DomainHead{}, err
	}
	return DomainHead{
		Domain: domain, ReportAddress: domain.ReportAddress(c.web.options.ReportDomain), Applied: applied(domain),
	}, nil
}

// applied returns the policy that receivers apply to a domain by its record, "" where
// there is none that they can use.
func applied(domain dmarcd.Domain) string {
	record, ok := dmarc.Parse(domain.Record)
	if !ok {
		return ""
	}
	subject := dmarc.Itself
	if domain.RecordDomain != domain.Name {
		subject = dmarc.Subdomain
	}
	policy, _ := record.Policy(subject)
	return record.Applied(policy).String()
}

// Meaning says in a sentence what the policy means for mail.
func (d DomainHead) Meaning() string {
	var by string
	if d.RecordDomain != "" && d.RecordDomain != d.Name {
		by = " This follows from the record of " + d.RecordDomain + "."
	}
	switch d.Applied {
	case "reject":
		return "Receivers are asked to refuse mail that uses this name and does not pass." + by
	case "quarantine":
		return "Receivers are asked to treat mail that uses this name and does not pass as suspicious." + by
	case "none":
		return "Receivers are asked to report, and to deliver mail that does not pass like any other: strangers can use this name." + by
	}
	switch {
	case !d.Known():
		return "The DNS has not given an answer yet, so that nothing can be said about the policy."
	case d.Record != "":
		return "There is a record, but receivers cannot use it: it is as if there were none."
	}
	return "There is no policy: strangers can use this name, and nobody reports it."
}

// tab is one of the pages of a domain.
type tab struct {
	ui.Link
	Current bool
}

// domainView is what every page of a domain shows.
type domainView struct {
	Head DomainHead
	Tabs []tab
}

// domainPage loads the head of a domain, and frames the page called title.
func (s *Web) domainPage(c *call, template, title string) (Page, domainView, error) {
	head, err := c.domainHead()
	if err != nil {
		return Page{}, domainView{}, err
	}
	view := domainView{Head: head}
	for _, t := range []struct{ title, path string }{
		{"Timeline", ""},
		{"Sources", "/sources"},
		{"DNS check", "/check"},
		{"History", "/history"},
		{"SPF", "/spf"},
		{"Failure reports", "/reports?kind=failure"},
		{"TLS reports", "/reports?kind=tls"},
		{"Set-up", "/setup"},
		{"Settings", "/settings"},
	} {
		view.Tabs = append(view.Tabs, tab{ui.Link{Text: t.title, Href: domainPath(head.Name) + t.path}, t.title == title})
	}
	return Page{
		Template: template, Title: title + " · " + head.Name, Section: "Overview",
		Trail: []ui.Link{{Text: "Overview", Href: Prefix + "/"}},
	}, view, nil
}

// Known reports whether the DNS has given an answer. Before, nothing can be said of
// the policy or of where reports go.
func (d DomainHead) Known() bool { return !d.KnownAt.IsZero() }

// PolicyBadge is the policy that applies, with that of the record where it says
// another, as in testing: lists of domains show that one.
func (d DomainHead) PolicyBadge() ui.Cell {
	if !d.Known() {
		return ui.Badge("unknown")
	}
	cell := policyCell(strings.ToLower(d.Applied))
	if d.Policy != "" && d.Applied != "" && d.Policy != strings.ToLower(d.Applied) {
		cell.Note = "the record says " + d.Policy
	}
	return cell
}
