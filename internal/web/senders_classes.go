package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// classSet is the word after the class of a sender was changed.
const classSet = "class-set"

// automatic is the value of the choice that removes the class that the team set.
const automatic = "automatic"

// classChoices are the classes that a user can set.
func classChoices() []ui.Choice {
	return []ui.Choice{
		{Value: string(dmarcd.ClassYours), Label: "Yours"},
		{Value: string(dmarcd.ClassForwarder), Label: "Forwarder"},
		{Value: string(dmarcd.ClassUnknown), Label: "Unknown"},
		{Value: string(dmarcd.ClassSpoofing), Label: "Spoofing"},
	}
}

// classChoice are the choices for a sender and the present one, which changes nothing.
func classChoice(a *insight.Assessment) []ui.Choice {
	choices := append([]ui.Choice{{Value: automatic, Label: "Automatic"}}, classChoices()...)
	for i, choice := range choices {
		if choice.Value == string(a.Set) || a.Set == "" && choice.Value == automatic {
			choices[i].Value = ""
		}
	}
	if a.Set == "" {
		choices[0].Label = "Automatic: " + strings.ToLower(classBadge(a.Class).Text)
	}
	return choices
}

const (
	// maxClassed is how many senders are classified, those with the most messages.
	maxClassed = 1000
	// shownOfClass is how many senders of each class are shown, shownOfOneClass those of a selected one.
	shownOfClass, shownOfOneClass = 20, 100
)

// classified are senders by class, in a form that sets classes.
type classified struct {
	// Path receives the form, "" if the viewer may not set classes.
	Path   string
	Groups []classGroup
	// Bulk is the choice for the checked senders.
	Bulk ui.Cell
	// Error says why the form changed nothing.
	Error string
	// More is the number of senders without a class, those with the fewest messages.
	More  int
	Pager ui.Pager
	Empty ui.Empty
}

// classGroup are the senders of one class.
type classGroup struct {
	classCount
	// Open shows the rows at once.
	Open bool
	// Passes is a sentence about its mail, Lead one that is true of all or most of its senders.
	Passes, Lead string
	Table        ui.Table
	// More is the number of senders that are not shown.
	More int
}

// leads say once what is true of all senders of a class.
var leads = map[dmarcd.Class]string{
	dmarcd.ClassYours:     "Your own servers: SPF, DKIM or their host names link them to you.",
	dmarcd.ClassService:   "Services that send for you, and authenticate as your domain.",
	dmarcd.ClassForwarder: "They pass on mail that you sent to others. SPF never survives that; a DKIM signature does, unless they change the message.",
	dmarcd.ClassUnknown:   "Nothing shows yet whether they send for you. Set their class if you know it.",
	dmarcd.ClassSpoofing:  "None of them ever authenticates as your domain, and nothing in SPF, DKIM or host names links them to you.",
}

// newClassified groups senders by class. written is the form that could not be saved, and why.
func newClassified(c *site.Call, asked mailQuery, path string, found insight.List, written url.Values, problem error) (*classified, error) {
	query := c.R.URL.Query()
	view := &classified{More: found.Matching - len(found.Rows), Bulk: ui.Choose("class", "Class of the selected senders", written.Get("class"), append([]ui.Choice{{Label: "Choose a class"}}, append([]ui.Choice{{Value: automatic, Label: "Automatic"}}, classChoices()...)...))}
	if c.Viewer.MayEdit() {
		view.Path = ui.WithQuery(path, query, "after", "", "open", "")
	}
	if problem != nil {
		form, ok := ui.Form{}.Filled(written, problem)
		if !ok {
			return nil, problem
		}
		view.Error = form.Error
	}
	one := dmarcd.Class(query.Get("class"))
	for _, class := range classes {
		rows := slices.DeleteFunc(slices.Clone(found.Rows), func(r insight.Row) bool { return r.Assessment == nil || r.Assessment.Class != class.class })
		if len(rows) == 0 || one != "" && one != class.class {
			continue
		}
		group := classGroup{classCount: classCount{Class: class.class, Senders: len(rows), Href: ui.WithQuery(path, query, "class", string(class.class), "after", "", "open", "")}, Lead: leads[class.class]}
		var passes int64
		for _, row := range rows {
			group.Messages += row.Counts.Total()
			passes += row.Counts.Compliant
		}
		group.Passes = phrase.Percent(passes, group.Messages) + " pass DMARC"
		group.Open = one != "" || asked.Search != "" || written != nil || query.Get("open") == string(class.class) || class.class != dmarcd.ClassSpoofing
		shown := rows[:min(len(rows), shownOfClass)]
		if one != "" {
			page := site.PageNumber(query)
			first := min((page-1)*shownOfOneClass, len(rows))
			shown = rows[first:min(first+shownOfOneClass, len(rows))]
			view.Pager = ui.NumberedPager(path, query, page, shownOfOneClass, len(rows))
		} else {
			group.More = len(rows) - len(shown)
		}
		group.Table = classTable(c, asked, shown, written)
		group.Table.Caption = group.Title() + ": senders"
		view.Groups = append(view.Groups, group)
	}
	return view, nil
}

// classTable lists senders of one class. Those who may not change anything see no fields.
func classTable(c *site.Call, asked mailQuery, rows []insight.Row, written url.Values) ui.Table {
	t := ui.Table{Columns: []ui.Column{{Title: "Sender", Wide: true}, {Title: "Messages", Numeric: true}, {Title: "Pass DMARC", Numeric: true}, {Title: "Evidence", Wide: true}}}
	if c.Viewer.MayEdit() {
		t.Columns = append([]ui.Column{{Title: "Select"}}, append(t.Columns, ui.Column{Title: "Class"})...)
	}
	for _, row := range rows {
		total := row.Counts.Total()
		cells := []ui.Cell{asked.cell(row), ui.Count(total), ui.Percent(row.Counts.Compliant, total), evidenceCell(asked, row)}
		cells[0].Note = ""
		if c.Viewer.MayEdit() {
			check := ui.Check("sender", row.Key, "Check "+row.Name, slices.Contains(written["sender"], row.Key))
			choose := ui.Choose("class:"+row.Key, "Class of "+row.Name, written.Get("class:"+row.Key), classChoice(row.Assessment))
			cells = append([]ui.Cell{check}, append(cells, choose)...)
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// evidenceCell shows the most important sentence about a sender, and the others on demand. What the
// lead of its class says is left out.
func evidenceCell(asked mailQuery, row insight.Row) ui.Cell {
	a := row.Assessment
	list := slices.DeleteFunc(slices.Clone(a.Evidence), func(text string) bool { return text == insight.NeverYours })
	summary := "Evidence"
	switch {
	case a.Cause != "" && a.Class != dmarcd.ClassSpoofing && row.Counts.NonCompliant > 0:
		summary = a.Cause
		if a.Fix != "" {
			list = append([]string{"Fix: " + a.Fix}, list...)
		}
	case a.Set != "":
		summary = "Your team set this class."
		list = slices.DeleteFunc(list, func(text string) bool { return text == summary })
	case len(list) > 0:
		summary, list = list[len(list)-1], list[:len(list)-1]
	}
	if row.Detail != "" {
		list = append(list, row.Detail+".")
	}
	return ui.Details(summary, list, ui.Link{Text: "Addresses, records and reports", Href: senderPath(asked, row.Key)})
}

// setClasses sets the classes of senders for a domain, or for all domains if it is "": of those whose
// choice was changed, or of the checked ones.
func (s *Web) setClasses(c *site.Call, domain string, form url.Values) error {
	changes := make(map[string]dmarcd.Class)
	var err error
	if form.Get("do") == "each" {
		for name, values := range form {
			if key, ok := strings.CutPrefix(name, "class:"); ok && values[0] != "" {
				changes[key] = newClass(values[0])
			}
		}
		if len(changes) == 0 {
			err = &dmarcd.InvalidError{Field: "sender", Message: "Nothing was changed: choose another class for a sender first."}
		}
	} else {
		for _, key := range form["sender"] {
			changes[key] = newClass(form.Get("class"))
		}
		switch {
		case form.Get("do") == "checked" && len(changes) == 0:
			err = &dmarcd.InvalidError{Field: "sender", Message: "No sender is selected. Select the senders whose class you want to set."}
		case form.Get("class") == "":
			err = &dmarcd.InvalidError{Field: "class", Message: "Choose a class."}
		}
	}
	if err == nil {
		err = c.Team.SetSenderClasses(c.R.Context(), domain, changes)
	}
	query := c.R.URL.Query()
	if err != nil {
		return s.againClasses(c, domain, form, err)
	}
	if row := query.Get("row"); row != "" {
		return c.Redirect(senderPath(s.senderQuery(query, domain), row) + "&done=" + classSet)
	}
	path := Prefix + "/senders"
	if domain != "" {
		path = domainPath(domain) + "/senders"
	}
	open := ""
	for _, class := range changes {
		open = string(class)
	}
	return c.Redirect(ui.WithQuery(path, query, "class", "", "page", "", "open", open, "done", classSet))
}

// newClass returns the class of a choice.
func newClass(word string) dmarcd.Class {
	if word == automatic {
		return ""
	}
	return dmarcd.Class(word)
}

// againClasses shows the page with the form that could not be saved.
func (s *Web) againClasses(c *site.Call, domain string, form url.Values, problem error) error {
	query := c.R.URL.Query()
	if key := query.Get("row"); key != "" {
		asked := s.senderQuery(query, domain)
		asked.Key = key
		return s.showSender(c, asked, form, problem)
	}
	if domain != "" {
		return s.showDomainSenders(c, form, problem)
	}
	return s.showSenders(c, form, problem)
}

// spfAddition is a change of the SPF record that lets failing mail pass.
type spfAddition struct {
	// Sender is the key of the sender that fails the most.
	Sender, Reason string
	// Added are the addresses, networks and names to add.
	Added  []string
	Record *dmarcd.TXTRecord
}

// proposedSPF returns what the advice for a domain adds to its SPF record, nil for nothing.
func proposedSPF(c *site.Call, name string) (*spfAddition, error) {
	advice, err := c.Team.Advice(c.R.Context(), name)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(advice.Steps, func(step dmarcd.Step) bool {
		return step.ID == dmarcd.ActionFix && step.Record != nil && strings.HasPrefix(step.Record.Value, "v=spf1")
	})
	if at < 0 {
		return nil, nil
	}
	step := advice.Steps[at]
	domain, err := c.Team.Domain(c.R.Context(), name)
	if err != nil {
		return nil, err
	}
	published := ""
	if check, err := c.Team.LatestCheck(c.R.Context(), domain); err == nil && check.Check.Facts != nil {
		published = check.Check.Facts.SPF.Record
	}
	proposed := &spfAddition{Sender: step.Sender, Reason: step.Reason, Record: step.Record}
	for _, term := range strings.Fields(step.Record.Value) {
		if !slices.Contains(strings.Fields(published), term) && !strings.HasPrefix(term, "v=") && !strings.HasSuffix(term, "all") {
			proposed.Added = append(proposed.Added, strings.TrimPrefix(strings.TrimPrefix(term, "ip4:"), "ip6:"))
		}
	}
	return proposed, nil
}

// Title says what the record adds.
func (p *spfAddition) Title() string {
	if len(p.Added) == 0 {
		return "Change the SPF record"
	}
	return "Add to the SPF record"
}

// statusOf is the status of a page that shows a form with a problem.
func statusOf(problem error) int {
	if problem != nil {
		return http.StatusUnprocessableEntity
	}
	return http.StatusOK
}
