package web

import (
	"cmp"
	"errors"
	"net/url"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

type senderView struct {
	Breakdown insight.Breakdown
	Query     mailQuery
	Period    ui.PeriodChoice
	Chart     ui.Chart
	Flow      ui.Chart
	Parts     []ui.Table
	Record    ui.Table
	Pager     ui.Pager
	// Assessment is the class of the sender with evidence, nil if unknown; Class is its badge.
	Assessment *insight.Assessment
	Class      ui.Cell
	// ClassForm sets its class, PartForm that of an address, a network or a part. Open shows the
	// latter at once.
	ClassForm, PartForm ui.Form
	Open                bool
	// SPF is what to add to the SPF record so that its mail passes, nil for nothing.
	SPF *spfAddition
	// NameForm names the sender, and NameTitle is its title, "" for none.
	NameForm  ui.Form
	NameTitle string
}

func (s *Web) sender(c *site.Call) error {
	query := c.R.URL.Query()
	asked := s.senderQuery(query, query.Get("domain"))
	asked.Group, asked.Key = insight.Group(c.Params.Get("group")), c.Params.Get("key")
	return s.showSender(c, asked, nil, nil)
}

// showSender shows a row. written is the form that could not be saved, and why.
func (s *Web) showSender(c *site.Call, asked mailQuery, written url.Values, problem error) error {
	query := c.R.URL.Query()
	asked.Search, asked.Failing = "", false // of the list
	if query.Has("csv") {
		asked.After, asked.Limit, asked.Parts = "", maxCSVRows, maxCSVRows
	}
	if plainGroup(asked.Group) == "" {
		return site.ErrNoSuchPage
	}
	var spf *spfAddition
	var err error
	if asked.Domain != "" { // before the mail is read: it reads some, too
		if spf, err = proposedSPF(c, asked.Domain); err != nil {
			return err
		}
	}
	mail, err := c.Mail(asked.Domain, asked.Period)
	if err != nil {
		return err
	}
	found, err := mail.Breakdown(c.R.Context(), asked.Query)
	if errors.Is(err, dmarcd.ErrNotFound) && query.Get("done") == classSet {
		// The new class changed which senders there are.
		list := Prefix + "/senders"
		if asked.Domain != "" {
			list = domainPath(asked.Domain) + "/senders"
		}
		return c.Redirect(c.Link(list, "done", classSet))
	}
	if err != nil {
		return err
	}
	view := senderView{Query: asked}
	if err := addAssessment(c, &view, mail); err != nil {
		return err
	}
	if err := view.addClassForms(c, written, problem); err != nil {
		return err
	}
	if spf != nil && (spf.Sender == asked.Key || view.Assessment != nil && strings.Contains(view.Assessment.Fix, "SPF record")) {
		view.SPF = spf
		if view.Assessment != nil { // the page says the cause once
			spf.Reason = strings.Replace(spf.Reason, view.Assessment.Cause+" ", "", 1)
		}
	}
	flows, err := mail.Flows(c.R.Context(), asked.Query)
	if err != nil {
		return err
	}
	records, err := mail.Records(c.R.Context(), asked.Query)
	if err != nil {
		return err
	}
	path := Prefix + "/senders/" + string(asked.Group) + "/" + url.PathEscape(asked.Key)
	view.Breakdown = found
	view.Period = ui.NewPeriodChoice(path, query, asked.Period, s.options.Now())
	var marks []ui.Mark
	reports := Prefix + "/reports"
	if asked.Domain != "" {
		reports = domainPath(asked.Domain) + "/reports"
		if marks, err = dnsMarks(c, asked.Domain, asked.Period); err != nil {
			return err
		}
	}
	view.Chart = messageChart(countsSentence(found.Counts), found.Days, marks)
	view.Chart.LinkDays(reports, site.Carried(query), "kind", string(dmarcd.KindAggregate))
	var classes map[string]dmarcd.Class
	if view.Assessment != nil {
		classes = map[string]dmarcd.Class{asked.Key: view.Assessment.Class}
		view.Chart.Tones[1] = failing(view.Assessment.Class).Tone
	}
	view.Flow = flowChart(flows, classes, asked, ui.WithQuery(path, query, "csv", "flow"))
	view.Record = sentRecordTable(c, records.Records, ui.WithQuery(path, query, "csv", "records", "after", ""))
	view.Pager = ui.CursorPager(path, query, records.Next)
	view.Chart.CSV = ui.WithQuery(path, query, "csv", "messages")
	view.Parts = partTables(found.Parts, asked, path, query)
	if view.NameForm, view.NameTitle, err = namingForm(c, asked, found); err != nil {
		return err
	}
	page := site.Page{Template: "sender", Title: found.Name, Section: "Senders", Charts: true}
	back := ui.Link{Text: "Senders", Href: ui.WithQuery(Prefix+"/senders", site.Carried(query), "group", string(asked.Group))}
	if asked.Domain != "" {
		back = ui.Link{Text: "Senders of " + asked.Domain, Href: ui.WithQuery(domainPath(asked.Domain)+"/senders", site.Carried(query), "group", string(asked.Group))}
	}
	page.Trail = []ui.Link{back}
	return c.Render(statusOf(problem), page, view, append(view.Parts, view.Record, view.Chart.Table(), view.Flow.Table())...)
}

// partTables show the mail of a row by the other groups.
func partTables(parts []insight.Part, asked mailQuery, path string, query url.Values) []ui.Table {
	tables := make([]ui.Table, 0, len(parts))
	for _, part := range parts {
		t := ui.Table{
			ID: string(part.Group), Caption: plainGroup(part.Group), CSV: ui.WithQuery(path, query, "csv", string(part.Group)),
			Columns: []ui.Column{
				{Title: plainGroup(part.Group), Wide: true, Note: "Detail"},
				{Title: "Messages", Numeric: true},
				{Title: "Passes DMARC", Numeric: true},
				{Title: "SPF", Numeric: true},
				{Title: "DKIM", Numeric: true},
			},
			Empty: ui.Empty{Title: "Not reported", Advice: "No report contains this information.", Action: ui.Link{}},
			More:  part.More,
		}
		below := asked
		below.Group = part.Group
		for _, row := range part.Rows {
			total := row.Counts.Total()
			t.Rows = append(t.Rows, []ui.Cell{
				below.cell(row), ui.Count(total), ui.Percent(row.Counts.Compliant, total),
				ui.Percent(row.Counts.SPF, total), ui.Percent(row.Counts.DKIM, total),
			})
		}
		tables = append(tables, t)
	}
	return tables
}

// addAssessment adds the class of a sender.
func addAssessment(c *site.Call, view *senderView, mail *insight.Mail) error {
	if view.Query.Group != insight.GroupSender {
		return nil
	}
	list, err := mail.List(c.R.Context(), insight.Query{Group: view.Query.Group, Key: view.Query.Key, Limit: 1, Assess: true})
	if err == nil && len(list.Rows) > 0 {
		view.Assessment = list.Rows[0].Assessment
		view.Class = classBadge(view.Assessment.Class)
	}
	return err
}

// addClassForms adds the forms that set the class of a sender or an address.
func (v *senderView) addClassForms(c *site.Call, written url.Values, problem error) error {
	asked := v.Query
	isSender := asked.Group == insight.GroupSender || asked.Group == insight.GroupAddress
	if !isSender || !c.Viewer.MayEdit() {
		return nil
	}
	path := Prefix + "/senders"
	if asked.Domain != "" {
		path = domainPath(asked.Domain) + "/senders"
	}
	path = c.Link(path, "group", string(asked.Group), "row", asked.Key)
	present := insight.Assessment{}
	if v.Assessment != nil {
		present = *v.Assessment
	}
	choices := classChoice(&present)
	if v.Assessment == nil { // an address has the class of its sender
		choices[0].Label = "The class of its sender"
	}
	v.ClassForm = ui.Form{Path: path, Method: "post", Submit: "Set class", Inline: true, Fields: []ui.Field{
		{Name: "sender", Type: "hidden", Value: asked.Key},
		{Name: "class", Label: "Class", Type: "select", Choices: choices},
	}}
	v.PartForm = ui.Form{Path: path, Method: "post", Submit: "Set class", Fields: []ui.Field{
		{
			Name: "sender", Label: "Sender", Type: "text", Value: cmp.Or(dmarcd.SenderBase(asked.Key), asked.Key), Required: true, Autocomplete: "off",
			Hint: "An address, a network such as 192.0.2.0/24, a whole sender such as AS64496, or a part such as AS64496:others.",
		},
		{Name: "class", Label: "Class", Type: "select", Choices: append(classChoices(), ui.Choice{Value: automatic, Label: "Automatic"})},
	}}
	if problem == nil {
		return nil
	}
	form := &v.ClassForm
	if v.Open = written.Get("sender") != asked.Key; v.Open {
		form = &v.PartForm
	}
	filled, ok := form.Filled(written, renamedField(problem, map[string]string{"key": "sender"}))
	if !ok {
		return problem
	}
	*form = filled
	return nil
}

// setSenderClasses sets the classes of senders for a domain.
func (s *Web) setSenderClasses(c *site.Call, domain dmarcd.Domain, form url.Values) error {
	return s.setClasses(c, domain.Name, form)
}

// setTeamClasses sets the classes of senders for all domains.
func (s *Web) setTeamClasses(c *site.Call, form url.Values) error { return s.setClasses(c, "", form) }
