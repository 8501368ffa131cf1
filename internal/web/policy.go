package web

import (
	"net/http"
	"net/url"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

type policyView struct {
	domainView
	Period ui.PeriodChoice
	Form   ui.Form
	// Result is what receivers would have done under the policy in the form.
	Result service.Simulation
	// Name and Record are the DNS record to publish for it.
	Name, Record string
	// Builder leads to the record builder with the record.
	Builder  string
	Handled  ui.Table
	Affected ui.Table
}

// Conclusion says what the policy does to the mail of the period.
func (v policyView) Conclusion() string {
	policy := "p=" + v.Result.Policy.P.String()
	switch lost, stopped := v.Result.LegitimateAffected, v.Result.SpoofingStopped; {
	case v.Result.Days == 0:
		return "No mail was reported in this period, so the effect of " + policy + " is unknown."
	case lost > 0:
		return policy + " affects " + ui.Plural(int(lost), "legitimate message", "legitimate messages") + ". Fix these senders first."
	case stopped > 0:
		return policy + " stops " + ui.Plural(int(stopped), "spoofed message", "spoofed messages") + " and affects no legitimate mail."
	}
	return policy + " affects no mail of this period."
}

// policyChoices are the choices of a policy; "" keeps that of the record, with none as
// its label.
func policyChoices(none string) []ui.Choice {
	return []ui.Choice{{Value: "", Label: none}, {Value: "none", Label: "none"}, {Value: "quarantine", Label: "quarantine"}, {Value: "reject", Label: "reject"}}
}

func modeChoices() []ui.Choice {
	return []ui.Choice{{Value: "", Label: "unchanged"}, {Value: "r", Label: "relaxed"}, {Value: "s", Label: "strict"}}
}

func policyForm(path string, query url.Values) ui.Form {
	form := ui.Form{Path: path, Method: "get", Submit: "Simulate", Inline: true, Fields: []ui.Field{
		{Name: "p", Label: "Policy (p)", Type: "select", Choices: policyChoices("unchanged")},
		{Name: "sp", Label: "Subdomains (sp)", Type: "select", Choices: policyChoices("unchanged")},
		{Name: "np", Label: "Non-existent subdomains (np)", Type: "select", Choices: policyChoices("unchanged")},
		{Name: "adkim", Label: "DKIM alignment", Type: "select", Choices: modeChoices()},
		{Name: "aspf", Label: "SPF alignment", Type: "select", Choices: modeChoices()},
	}}
	for i := range form.Fields {
		form.Fields[i].Value = query.Get(form.Fields[i].Name)
	}
	return form
}

// policyChange parses the form. Invalid values change nothing.
func policyChange(query url.Values) service.PolicyChange {
	var change service.PolicyChange
	for name, to := range map[string]**dmarc.Policy{"p": &change.P, "sp": &change.SP, "np": &change.NP} {
		for _, policy := range []dmarc.Policy{dmarc.None, dmarc.Quarantine, dmarc.Reject} {
			if query.Get(name) == policy.String() {
				*to = &policy
			}
		}
	}
	for name, to := range map[string]**dmarc.Mode{"adkim": &change.ADKIM, "aspf": &change.ASPF} {
		for _, mode := range []dmarc.Mode{dmarc.Relaxed, dmarc.Strict} {
			if query.Get(name) == mode.String() {
				*to = &mode
			}
		}
	}
	return change
}

// policy simulates a policy on the mail of the period.
func (s *Web) policy(c *call) error {
	page, head, err := s.domainPage(c, "policy", "Simulate a policy")
	if err != nil {
		return err
	}
	name := head.Head.Name
	path, query := domainPath(name)+"/policy", c.r.URL.Query()
	period := ui.PeriodOf(query, s.options.Now())
	result, err := c.team.Simulate(c.r.Context(), name, period.Days(), policyChange(query))
	if err != nil {
		return err
	}
	view := policyView{
		domainView: head, Form: c.carrying(policyForm(path, query)), Result: result, Name: dmarc.QueryName(name), Record: result.Record,
		Builder: ui.WithQuery(Prefix+"/builder", nil, "domain", name, "record", result.Record),
		Period:  ui.NewPeriodChoice(path, query, period, s.options.Now()),
		Handled: handledTable(result, ui.WithQuery(path, query, "csv", "handled")),
	}
	var affected []insight.SimulatedSender
	for _, sender := range result.Senders {
		if sender.Affected > 0 {
			affected = append(affected, sender)
		}
	}
	view.Affected = affectedTable(affected, s.sourceQuery(query, name))
	view.Affected.CSV = ui.WithQuery(path, query, "csv", "affected")
	for _, t := range []ui.Table{view.Handled, view.Affected} {
		if c.wantsCSV(t.ID) {
			return c.csv(t)
		}
	}
	return c.render(http.StatusOK, page, view)
}

// handledTable compares what receivers did with what they would do.
func handledTable(result service.Simulation, csv string) ui.Table {
	t := ui.Table{
		ID: "handled", Caption: "What receivers do", CSV: csv,
		Columns: []ui.Column{{Title: "Receivers", Wide: true}, {Title: "Delivered", Numeric: true}, {Title: "Quarantined", Numeric: true}, {Title: "Rejected", Numeric: true}},
	}
	for _, row := range []struct {
		title   string
		handled insight.Handled
	}{
		{"did, as reported", result.Observed},
		{"would do under RFC 9989", result.RFC9989},
		{"would do under RFC 7489", result.RFC7489},
	} {
		t.Rows = append(t.Rows, []ui.Cell{
			ui.Text(row.title), ui.Count(row.handled.Delivered), ui.Count(row.handled.Quarantined), ui.Count(row.handled.Rejected),
		})
	}
	return t
}

// affectedTable lists the senders whose mail would be quarantined or rejected.
func affectedTable(senders []insight.SimulatedSender, asked mailQuery) ui.Table {
	t := senderTable("affected", "Affected senders", senders, asked)
	t.Columns[3].Title = "Affected"
	for i, sender := range senders {
		t.Rows[i][3] = ui.Count(sender.Affected)
	}
	t.Empty = ui.Empty{Title: "No sender is affected", Advice: "Under this policy, receivers would have delivered every message of the period."}
	return t
}

// setSenderClass overrides the class of a sender, or removes the override.
func (s *Web) setSenderClass(c *call, form url.Values) error {
	domain, err := c.team.Domain(c.r.Context(), c.params.Get("domain"))
	if err != nil {
		return err
	}
	key := c.params.Get("sender")
	if err := c.team.SetSenderClass(c.r.Context(), domain.Name, key, dmarcd.Class(form.Get("class"))); err != nil {
		return err
	}
	asked := s.sourceQuery(c.r.URL.Query(), domain.Name)
	asked.Group = insight.GroupNetwork
	return c.redirect(sourcePath(asked, key) + "&done=class-set")
}
