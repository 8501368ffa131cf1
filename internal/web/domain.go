package web

import (
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// DomainHead is the head of every page of a domain.
type DomainHead struct {
	dmarcd.Domain
	// ReportAddress is its reporting address, "" if the installation has no report
	// domain.
	ReportAddress string
	// Applied is the policy that receivers apply, "" if there is none. A subdomain may
	// inherit it, and test mode weakens it by one level.
	Applied string
	Tags    []string
}

// domainHead returns the domain in the path.
func (c *call) domainHead() (DomainHead, error) {
	domain, err := c.team.Domain(c.r.Context(), c.params.Get("domain"))
	if err != nil {
		return DomainHead{}, err
	}
	tags, err := c.team.DomainTags(c.r.Context(), domain.Name)
	return DomainHead{
		Domain: domain, ReportAddress: domain.ReportAddress(c.web.options.ReportDomain), Applied: applied(domain), Tags: tags,
	}, err
}

// applied returns the policy that receivers apply to a domain, "" if it has no usable
// record.
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

// Meaning says what the policy is. The conclusion about the domain is that of the advice.
func (d DomainHead) Meaning() string {
	var by string
	if d.RecordDomain != "" && d.RecordDomain != d.Name {
		by = " This is the policy of " + d.RecordDomain + "."
	}
	switch d.Applied {
	case "reject":
		return "The policy asks receivers to reject mail that fails DMARC." + by
	case "quarantine":
		return "The policy asks receivers to put mail that fails DMARC into the spam folder." + by
	case "none":
		return "The policy asks receivers to deliver mail that fails DMARC, and to report it." + by
	}
	switch {
	case !d.Known():
		return "DNS has not answered yet, so the policy is unknown."
	case d.Record != "":
		return "Receivers cannot use the DMARC record, so they deliver mail that fails DMARC."
	}
	return "There is no DMARC record, so receivers deliver mail that fails DMARC, and send no reports."
}

// domainView is the part that all pages of a domain share.
type domainView struct {
	Head DomainHead
	// Lead is the sentence below the name: what the policy means or, on pages that have it, the
	// conclusion of the advice.
	Lead string
	Tabs []ui.Tab
	// Settings, Guide and DNS are the settings, the setup guide and the findings of the
	// domain; TagLinks are the domains with the same tags.
	Settings, Guide, DNS string
	TagLinks             []ui.Link
}

// domainPage loads the head of a domain and returns the page with that title.
func (s *Web) domainPage(c *call, template, title string) (Page, domainView, error) {
	head, err := c.domainHead()
	if err != nil {
		return Page{}, domainView{}, err
	}
	path := domainPath(head.Name)
	view := domainView{Head: head, Lead: head.Meaning(), Settings: c.link(path + "/settings"), Guide: c.link(path + "/setup"), DNS: c.link(path + "/dns"), TagLinks: c.tagLinks(head.Tags)}
	for _, t := range []struct{ title, path string }{
		{"Summary", ""},
		{"Senders", "/senders"},
		{"DNS", "/dns"},
		{"Changes", "/changes"},
		{"Reports", "/reports"},
	} {
		view.Tabs = append(view.Tabs, ui.Tab{Link: ui.Link{Text: t.title, Href: c.link(path + t.path)}, Current: t.title == title})
	}
	return Page{
		Template: template, Title: title + " · " + head.Name, Section: "Overview",
		Trail: []ui.Link{{Text: "Overview", Href: c.link(Prefix + "/")}},
	}, view, nil
}

// Known reports whether DNS has answered. Before, the policy and the destination of
// reports are unknown.
func (d DomainHead) Known() bool { return !d.KnownAt.IsZero() }

// PolicyBadge is the policy that applies, or that of the record with "(testing)" in test
// mode.
func (d DomainHead) PolicyBadge() ui.Cell {
	if !d.Known() {
		return ui.Badge("unknown")
	}
	if record, ok := dmarc.Parse(d.Record); ok && record.Testing && d.Policy != "" {
		return ui.Cell{Kind: ui.CellBadge, Text: d.Policy + " (testing)", Tone: "warning"}
	}
	return policyCell(strings.ToLower(d.Applied))
}
