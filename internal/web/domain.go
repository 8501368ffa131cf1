package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
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
func (s *Web) domainHead(c *site.Call) (DomainHead, error) {
	domain, err := c.Team.Domain(c.R.Context(), c.Params.Get("domain"))
	if err != nil {
		return DomainHead{}, err
	}
	tags, err := c.Team.DomainTags(c.R.Context(), domain.Name)
	return DomainHead{
		Domain: domain, ReportAddress: domain.ReportAddress(s.options.ReportDomain), Applied: domain.EffectivePolicy(), Tags: tags,
	}, err
}

// Meaning describes the policy. It draws no conclusion about the domain: the advice does.
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
	// Lead is the sentence below the name: the conclusion of the advice on pages that show it,
	// the meaning of the policy on others.
	Lead string
	Tabs []ui.Tab
	// Settings, Guide, DNS and Print are the settings, the setup guide, the findings and the printable
	// report of the domain; TagLinks are the domains with the same tags. Recheck checks its DNS, for editors.
	Settings, Guide, DNS, Print string
	TagLinks                    []ui.Link
	Recheck                     *ui.Action
}

// domainPage loads the head of a domain and returns the page with that title.
func (s *Web) domainPage(c *site.Call, template, title string) (site.Page, domainView, error) {
	head, err := s.domainHead(c)
	if err != nil {
		return site.Page{}, domainView{}, err
	}
	path := domainPath(head.Name)
	view := domainView{Head: head, Lead: head.Meaning(), Settings: c.Link(path + "/settings"), Guide: c.Link(path + "/setup"), DNS: c.Link(path + "/dns"), Print: c.Link(path + "/print"), TagLinks: tagLinks(c, head.Tags)}
	if c.Viewer.MayEdit() {
		view.Recheck = &ui.Action{Label: "Check now", Path: c.Link(path + "/dns")}
	}
	tabs := []struct{ title, path string }{
		{"Summary", ""},
		{"Senders", "/senders"},
		{"DNS", "/dns"},
		{"Changes", "/changes"},
		{"Reports", "/reports"},
		{managedTitle, "/records/" + string(dmarcd.RecordDMARC)},
	}
	if s.options.Zone == "" {
		tabs = tabs[:len(tabs)-1]
	}
	for _, t := range tabs {
		view.Tabs = append(view.Tabs, ui.Tab{Link: ui.Link{Text: t.title, Href: c.Link(path + t.path)}, Current: t.title == title})
	}
	return site.Page{
		Template: template, Title: title + " · " + head.Name, Section: "Domains",
		Trail: []ui.Link{{Text: "Domains", Href: c.Link(domainsPath)}},
	}, view, nil
}

// Known reports whether DNS has answered. Before, the policy and the destination of
// reports are unknown.
func (d DomainHead) Known() bool { return !d.KnownAt.IsZero() }

// PolicyBadge shows the policy that applies. In test mode it shows the published policy and
// "(testing)".
func (d DomainHead) PolicyBadge() ui.Cell {
	if !d.Known() {
		return ui.Badge("unknown")
	}
	if record, ok := dmarc.Parse(d.Record); ok && record.Testing && d.Policy != "" {
		return ui.Cell{Kind: ui.CellBadge, Text: d.Policy + " (testing)", Tone: "warning"}
	}
	return policyCell(strings.ToLower(d.Applied))
}

// HeadBadge is PolicyBadge where no column says what it is.
func (d DomainHead) HeadBadge() ui.Cell {
	badge := d.PolicyBadge()
	if d.Applied != "" {
		badge.Text = "policy " + badge.Text
	}
	return badge
}

func policyCell(policy string) ui.Cell {
	if policy == "" {
		return ui.Cell{Kind: ui.CellBadge, Text: "no policy", Tone: "bad"}
	}
	return ui.Badge(policy)
}

// domainPath is the path of the pages of a domain.
func domainPath(name string) string { return Prefix + "/domains/" + url.PathEscape(name) }

// topSenders is the number of senders in the summary.
const topSenders = 8

type summaryView struct {
	domainView
	Timeline
	Period  ui.PeriodChoice
	Advice  adviceView
	Figures []figure
	// Classes are the classes of senders with their messages, most important first; SendersHref lists all
	// senders.
	Classes     []classCount
	SendersHref string
	Chart       ui.Chart
	Disposition ui.Chart
	// Senders are those with the most mail that do not spoof; Spoofing is what is said of all others, ""
	// if there are none.
	Senders  ui.Table
	Spoofing string
	// Empty is shown if no mail was reported.
	Empty ui.Empty
}

// classCount is the number of messages from senders of a class.
type classCount struct {
	Class    dmarcd.Class
	Senders  int
	Messages int64
	// Href is the list of senders of the class.
	Href string
}

// classes are the classes of senders with their names, in display order.
var classes = []struct {
	class       dmarcd.Class
	title, tone string
}{
	{dmarcd.ClassYours, "Yours", "good"},
	{dmarcd.ClassService, "Service", "good"},
	{dmarcd.ClassForwarder, "Forwarder", "forwarded"},
	{dmarcd.ClassUnknown, "Unknown", "warning"},
	{dmarcd.ClassSpoofing, "Spoofing", "spoofed"},
}

// classBadge is the name of a class.
func classBadge(class dmarcd.Class) ui.Cell {
	for _, c := range classes {
		if c.class == class {
			return ui.Cell{Kind: ui.CellBadge, Text: c.title, Tone: c.tone}
		}
	}
	return ui.Badge("unknown")
}

// Title is the name of the class.
func (c classCount) Title() string { return classBadge(c.Class).Text }

// Tone is the color of the class.
func (c classCount) Tone() string { return classBadge(c.Class).Tone }

// countClasses sums the messages of a domain's senders by class.
func countClasses(senders []insight.SimulatedSender, domain string, query url.Values) []classCount {
	var counts []classCount
	for _, c := range classes {
		count := classCount{Class: c.class}
		for _, sender := range senders {
			if sender.Class == c.class {
				count.Senders++
				count.Messages += sender.Messages
			}
		}
		if count.Senders > 0 {
			count.Href = ui.WithQuery(domainPath(domain)+"/senders", site.Carried(query), "class", string(c.class))
			counts = append(counts, count)
		}
	}
	return counts
}

// summary shows the conclusion about a domain first, then the way to reject, then the evidence.
func (s *Web) summary(c *site.Call) error {
	page, head, err := s.domainPage(c, "domain", "Summary")
	if err != nil {
		return err
	}
	page.Charts = true
	name := head.Head.Name
	path, query := domainPath(name), c.R.URL.Query()
	period := ui.PeriodOf(query, s.options.Now())
	found, err := newTimeline(c, name, period)
	if err != nil {
		return err
	}
	advice, err := c.Team.Advice(c.R.Context(), name)
	if err != nil {
		return err
	}
	head.Lead = advice.Conclusion
	mail, err := c.Team.DomainMail(c.R.Context(), name, period.Days())
	if err != nil {
		return err
	}
	series := service.NewClassSeries(found.Series, mail.ByDay)
	own, spoofing := withoutSpoofing(mail.Senders)
	view := summaryView{
		domainView: head, Timeline: found, Advice: s.newAdviceView(c, &advice),
		Period:      ui.NewPeriodChoice(path, query, period, s.options.Now()),
		Figures:     classFigures(series, period.Len()),
		Classes:     countClasses(mail.Senders, name, query),
		SendersHref: c.Link(path + "/senders"),
		Chart:       classChart(series, found.Marks),
		Disposition: dispositionChart(found),
		Senders:     topSenderTable(own, topSenders, s.senderQuery(query, name)),
		Spoofing:    spoofing,
		Empty: ui.Empty{
			Title: "No messages were reported", Advice: "Choose a longer period, or check in the setup guide whether reports are sent here.",
			Action: ui.Link{Text: "Setup guide", Href: head.Guide},
		},
	}
	view.Chart.LinkDays(path+"/reports", site.Carried(query), "kind", string(dmarcd.KindAggregate))
	view.Disposition.LinkDays(path+"/reports", site.Carried(query), "kind", string(dmarcd.KindAggregate))
	view.Chart.CSV = ui.WithQuery(path, query, "csv", "messages")
	view.Disposition.CSV = ui.WithQuery(path, query, "csv", "disposition")
	view.Senders.CSV = ui.WithQuery(path, query, "csv", "senders")
	if err := s.offerPublish(c, &view.Advice); err != nil {
		return err
	}
	return c.Render(http.StatusOK, page, view, view.Chart.Table(), view.Disposition.Table(), view.Senders)
}

// withoutSpoofing returns the senders that do not spoof, and what is true of all that do.
func withoutSpoofing(senders []insight.SimulatedSender) (others []insight.SimulatedSender, spoofing string) {
	var messages int64
	for _, sender := range senders {
		if sender.Class == dmarcd.ClassSpoofing {
			messages += sender.Messages
			continue
		}
		others = append(others, sender)
	}
	n := int64(len(senders) - len(others))
	if n == 0 {
		return others, ""
	}
	never, link := "None of them ever authenticates", "links them"
	if n == 1 {
		never, link = "It never authenticates", "links it"
	}
	return others, phrase.Count(messages, "message") + " from " + phrase.Count(n, "sender") + ". " + never + " as your domain, and nothing in SPF, DKIM or host names " + link + " to you."
}

// topSenderTable lists at most n senders with the most messages, by class.
func topSenderTable(senders []insight.SimulatedSender, n int, asked mailQuery) ui.Table {
	top := slices.Clone(senders[:min(len(senders), n)])
	slices.SortStableFunc(top, func(a, b insight.SimulatedSender) int {
		return cmp.Or(cmp.Compare(classRank(a.Class), classRank(b.Class)), cmp.Compare(b.Messages, a.Messages))
	})
	return senderTable("senders", "Top senders", top, asked)
}

func classRank(class dmarcd.Class) int {
	for i, c := range classes {
		if c.class == class {
			return i
		}
	}
	return len(classes)
}

// senderTable lists senders of a domain with their classes, and why their mail fails.
func senderTable(id, caption string, senders []insight.SimulatedSender, asked mailQuery) ui.Table {
	t := ui.Table{
		ID: id, Caption: caption,
		Columns: []ui.Column{
			{Title: "Sender", Wide: true},
			{Title: "Class", Wide: true, Note: "Evidence"},
			{Title: "Messages", Numeric: true},
			{Title: "Passes DMARC", Numeric: true},
			{Title: "Cause", Wide: true, Note: "Fix"},
		},
		Empty: ui.Empty{Title: "No senders", Advice: "No mail was reported in this period. Choose a longer period, or check whether reports arrive.", Action: ui.Link{Text: "Reports", Href: domainPath(asked.Domain) + "/reports"}},
	}
	asked.Group = insight.GroupSender
	for _, sender := range senders {
		class := classBadge(sender.Class)
		if n := len(sender.Evidence); n > 0 && sender.Evidence[n-1] != insight.NeverYours { // the class says so
			class = class.Noted(sender.Evidence[n-1])
		}
		var cause ui.Cell
		if sender.Class != dmarcd.ClassSpoofing { // there is nothing to fix
			cause = ui.Text(sender.Cause).Noted(sender.Fix)
		}
		t.Rows = append(t.Rows, []ui.Cell{
			ui.LinkTo(sender.Name, senderPath(asked, sender.Key)), class, ui.Count(sender.Messages),
			ui.Percent(sender.Messages-sender.Affected, sender.Messages), cause,
		})
	}
	if !slices.ContainsFunc(t.Rows, func(row []ui.Cell) bool { return row[4].Text != "" }) {
		return t.Without("Cause")
	}
	return t
}
