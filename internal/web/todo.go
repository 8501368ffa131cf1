package web

import (
	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

const (
	// recordsCSV is the file with the records of domains that have none.
	recordsCSV = "records"
	// maxTodo limits the actions on the overview, maxAdvised the domains whose advice it reads.
	maxTodo    = 6
	maxAdvised = 10
)

// todo is what a team has to do, the most urgent first.
type todo struct {
	// Protected, Partly, Needing and Domains count domains: those that are protected against spoofing, or
	// partly, as in the report for managers; those that need the user; and all.
	Protected, Partly, Needing, Domains int
	Tasks                               []task
	// Finished are the conclusions about domains without an action.
	Finished []adviceView
	// More is the list of all domains that need the user, "" if Tasks has them all.
	More string
}

// task is one line of the list.
type task struct {
	// Domain is "" for a task of several domains.
	Domain, Text, Effect, Href string
	// Question is true if the user has to answer, not to change something.
	Question bool
	// Links are what can be done about several domains.
	Links []ui.Link
}

// newTodo reads the next actions of domains. Those without a DMARC record are one task, however many
// there are.
func (s *Web) newTodo(c *site.Call) (todo, error) {
	var t todo
	domains, err := c.Team.Domains(c.R.Context(), "", maxCSVRows)
	if err != nil {
		return t, err
	}
	t.Domains = len(domains)
	missing, unknown, skip := 0, 0, 0
	for _, d := range domains {
		switch protection, _ := service.ProtectionOf(d); {
		case protection == service.UnknownYet:
			unknown++
		case d.Policy == "":
			missing++
		case protection == service.Protected:
			t.Protected++
		case protection == service.PartlyProtected:
			t.Partly++
		}
	}
	if missing > 1 {
		t.Tasks = append(t.Tasks, task{
			Text: phrase.Number(int64(missing)) + " domains have no usable DMARC record", Effect: "anyone can send mail in their name",
			Links: []ui.Link{
				{Text: "Show", Href: c.Link(domainsPath, "policy", "missing")},
				{Text: "Export the records", Href: c.Link(Prefix+"/", "csv", recordsCSV)},
			},
		})
		skip, t.Needing = missing+unknown, missing // UrgentDomains begins with both
	}
	advice, more, err := c.Team.AllAdvice(c.R.Context(), skip, maxAdvised)
	if err != nil {
		return t, err
	}
	for i := range advice {
		switch next := advice[i].Next(); {
		case next == nil || next.ID == dmarcd.ActionWait:
			t.Finished = append(t.Finished, s.newAdviceView(c, &advice[i]))
		default:
			t.Needing++
			t.Tasks = append(t.Tasks, newTask(c, &advice[i], next))
		}
	}
	if more {
		counts, err := c.Team.PostureCounts(c.R.Context(), service.PostureFilter{})
		if err != nil {
			return t, err
		}
		t.Needing = max(t.Needing, countDomains(counts, service.PostureFilter{Next: service.NextAct}.Matches))
	}
	if more || len(t.Tasks) > maxTodo {
		t.More = c.Link(domainsPath, "next", service.NextAct)
		t.Tasks = t.Tasks[:min(len(t.Tasks), maxTodo)]
	}
	t.Finished = t.Finished[:min(len(t.Finished), maxTodo)]
	return t, nil
}

func newTask(c *site.Call, advice *dmarcd.Advice, next *dmarcd.Action) task {
	t := task{Domain: advice.Domain, Text: next.Title, Effect: effectOf(next), Href: c.Link(domainPath(advice.Domain)), Question: next.Question != nil || next.ID == dmarcd.ActionAccept}
	if next.ID == dmarcd.ActionPublish || next.ID == dmarcd.ActionRepair {
		t.Effect = "anyone can send mail in its name"
	}
	return t
}

// effectOf says in a few words what an action changes, or how much mail it is about.
func effectOf(action *dmarcd.Action) string {
	switch action.ID {
	case dmarcd.ActionTighten, dmarcd.ActionLock:
		where := "rejected"
		if record, _ := dmarc.Parse(action.Record.Value); record.Applied(record.P) != dmarc.Reject {
			where = "to the spam folder"
		}
		return phrase.Number(action.LegitimateAffected) + " of yours affected, " + phrase.Number(action.SpoofingStopped) + " spoofed " + where
	case dmarcd.ActionFix:
		return phrase.Count(action.Failing, "message") + " of yours fail"
	case dmarcd.ActionAnswer:
		return phrase.Count(action.Question.Messages, "message")
	case dmarcd.ActionAccept:
		return phrase.Count(action.ForwarderAffected, "forwarded message")
	case dmarcd.ActionCheck:
		return "the DNS has not answered yet"
	case dmarcd.ActionReports:
		return "no reports arrive here"
	}
	return ""
}

// title answers whether the domains are safe.
func (t todo) title(tag string) string {
	of := phrase.Count(int64(t.Domains), "domain")
	if tag != "" {
		of += " with the tag " + tag
	}
	verb, need := "are", "need"
	if t.Protected == 1 {
		verb = "is"
	}
	if t.Needing == 1 {
		need = "needs"
	}
	var text string
	switch {
	case t.Domains == 0:
		return "Overview"
	case t.Domains == 1 && t.Protected == 1:
		text = "Your domain is protected."
	case t.Domains == 1 && t.Partly == 1:
		text = "Your domain is partly protected."
	case t.Domains == 1:
		text = "Your domain is not protected."
	case t.Protected == t.Domains:
		text = "All " + of + " are protected."
	default:
		text = phrase.Number(int64(t.Protected)) + " of " + of + " " + verb + " protected"
		if t.Partly > 0 {
			text += ", " + phrase.Number(int64(t.Partly)) + " partly"
		}
		text += "."
	}
	switch {
	case t.Needing == 0:
		return text + " Nothing to do."
	case t.Domains == 1:
		return text + " It needs you."
	}
	return text + " " + phrase.Number(int64(t.Needing)) + " " + need + " you."
}

// exportRecords sends the records to publish for the domains that have none.
func exportRecords(c *site.Call) error {
	rows, err := c.Team.Postures(c.R.Context(), service.PostureFilter{Policy: "missing", Limit: maxCSVRows})
	if err != nil {
		return err
	}
	t := ui.Table{ID: recordsCSV, Columns: []ui.Column{{Title: "Name"}, {Title: "Type"}, {Title: "Value"}}}
	for _, d := range rows {
		record, err := c.Team.ProposedRecord(c.R.Context(), d.Name)
		if err != nil {
			return err
		}
		t.Rows = append(t.Rows, []ui.Cell{ui.Text(dmarc.QueryName(d.Name)), ui.Text("TXT"), ui.Text(record)})
	}
	return c.CSV(t)
}
