package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// topSenders is the number of senders in the summary, printedSenders that on paper.
const (
	topSenders     = 8
	printedSenders = 5
)

type summaryView struct {
	domainView
	Timeline
	Period ui.PeriodChoice
	Advice adviceView
	// Classes are the classes of senders with their messages, most important first.
	Classes     []classCount
	Chart       ui.Chart
	Disposition ui.Chart
	Senders     ui.Table
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
	{dmarcd.ClassForwarder, "Forwarder or list", "info"},
	{dmarcd.ClassUnknown, "Unknown", "warning"},
	{dmarcd.ClassSpoofing, "Spoofing", "bad"},
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
			count.Href = ui.WithQuery(domainPath(domain)+"/senders", carried(query), "class", string(c.class))
			counts = append(counts, count)
		}
	}
	return counts
}

// summary shows the conclusion about a domain first, then the way to reject, then the evidence.
func (s *Web) summary(c *call) error {
	page, head, err := s.domainPage(c, "summary", "Summary")
	if err != nil {
		return err
	}
	page.Charts = true
	name := head.Head.Name
	path, query := domainPath(name), c.r.URL.Query()
	period := ui.PeriodOf(query, s.options.Now())
	found, err := c.timeline(name, period)
	if err != nil {
		return err
	}
	advice, err := c.team.Advice(c.r.Context(), name)
	if err != nil {
		return err
	}
	head.Lead = advice.Conclusion
	senders, err := c.senders(name, period)
	if err != nil {
		return err
	}
	view := summaryView{
		domainView: head, Timeline: found, Advice: c.adviceView(&advice),
		Period:      ui.NewPeriodChoice(path, query, period, s.options.Now()),
		Classes:     countClasses(senders, name, query),
		Chart:       messageChart(countsSentence(found.Counts), found.Days, found.Marks),
		Disposition: dispositionChart(found),
		Senders:     topSenderTable(senders, topSenders, s.sourceQuery(query, name)),
		Empty: ui.Empty{
			Title: "No messages were reported", Advice: "Choose a longer period, or check in the setup guide whether reports are sent here.",
			Action: ui.Link{Text: "Setup guide", Href: head.Guide},
		},
	}
	view.Chart.LinkDays(path+"/reports", carried(query), "kind", string(dmarcd.KindAggregate))
	view.Disposition.LinkDays(path+"/reports", carried(query), "kind", string(dmarcd.KindAggregate))
	view.Chart.CSV = ui.WithQuery(path, query, "csv", "messages")
	view.Disposition.CSV = ui.WithQuery(path, query, "csv", "disposition")
	view.Senders.CSV = ui.WithQuery(path, query, "csv", "senders")
	return c.render(http.StatusOK, page, view, view.Chart.Table(), view.Disposition.Table(), view.Senders)
}

// senders returns the senders of a domain with their classes. Affected is the mail that
// fails DMARC, which p=reject would reject.
func (c *call) senders(domain string, period ui.Period) ([]insight.SimulatedSender, error) {
	reject := dmarc.Reject
	simulated, err := c.team.Simulate(c.r.Context(), domain, period.Days(), service.PolicyChange{P: &reject, SP: &reject, NP: &reject})
	return simulated.Senders, err
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
	asked.Group = insight.GroupNetwork
	for _, sender := range senders {
		class := classBadge(sender.Class)
		if len(sender.Evidence) > 0 {
			class = class.Noted(sender.Evidence[len(sender.Evidence)-1])
		}
		var cause ui.Cell
		if sender.Class != dmarcd.ClassSpoofing { // there is nothing to fix
			cause = ui.Text(sender.Cause).Noted(sender.Fix)
		}
		t.Rows = append(t.Rows, []ui.Cell{
			ui.LinkTo(sender.Name, sourcePath(asked, sender.Key)), class, ui.Count(sender.Messages),
			ui.Share(sender.Messages-sender.Affected, sender.Messages), cause,
		})
	}
	if !slices.ContainsFunc(t.Rows, func(row []ui.Cell) bool { return row[4].Text != "" }) {
		return t.Without("Cause")
	}
	return t
}
