package web

import (
	"net/http"
	"net/url"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

type policyView struct {
	domainView
	Period ui.PeriodChoice
	Form   ui.Form
	// Result is what receivers would have done under the policy in the form.
	Result service.Simulation
	// Record is what to publish for it, nil for nothing.
	Record *dmarcd.TXTRecord
	// Builder leads to the record builder with the record.
	Builder  string
	Handled  ui.Table
	Affected ui.Table
}

// harmlessFraction is the fraction of legitimate mail that a policy may affect, as for the advice.
const harmlessFraction = 0.005

// Harmful reports whether the policy affects so much legitimate mail that it should not be
// published yet.
func (v policyView) Harmful() bool {
	return float64(v.Result.LegitimateAffected) > harmlessFraction*float64(v.Result.Legitimate)
}

// Headline describes the effect of the policy on the mail of the period.
func (v policyView) Headline() string {
	policy := "p=" + v.Result.Policy.P.String()
	switch {
	case v.Result.Days == 0:
		return "No mail was reported in this period, so the effect of " + policy + " is unknown."
	case v.Harmful():
		return "Not yet: " + policy + " affects " + phrase.Number(v.Result.LegitimateAffected) + " of " +
			phrase.Count(v.Result.Legitimate, "legitimate message") + ". Fix these senders first."
	case v.Result.SpoofingStopped > 0:
		return policy + " affects " + phrase.Number(v.Result.SpoofingStopped) + " of " +
			phrase.Count(v.Result.Spoofing, "spoofed message") + ", and " + phrase.Number(v.Result.LegitimateAffected) + " of yours."
	}
	return policy + " affects no spoofed mail of this period."
}

// Figures are the affected messages of each class.
func (v policyView) Figures() []figure {
	of := func(name string, affected, total int64) figure {
		return figure{Name: name, Value: phrase.Number(affected), Note: "of " + phrase.Number(total) + " affected"}
	}
	r := &v.Result
	return []figure{
		of("Legitimate", r.LegitimateAffected, r.Legitimate),
		of("Forwarded", r.ForwarderAffected, r.Forwarder),
		of("Unknown", r.UnknownAffected, r.Unknown),
		of("Spoofed", r.SpoofingStopped, r.Spoofing),
	}
}

// Testing explains t=y, "" if the record does not have it.
func (v policyView) Testing() string {
	if !v.Result.Policy.Testing {
		return ""
	}
	effect := "it has no effect"
	switch v.Result.Policy.P {
	case dmarc.Reject:
		effect = "mail that fails DMARC goes to the spam folder instead of being rejected"
	case dmarc.Quarantine:
		effect = "mail that fails DMARC is delivered instead of going to the spam folder"
	}
	return "The record has t=y (test mode): receivers that follow RFC 9989 apply the next weaker policy. With p=" + v.Result.Policy.P.String() + ", " + effect +
		". Older receivers (RFC 7489) ignore t=y. Remove it in the record builder when the test is over."
}

// policyChoices are the choices of a policy. The value "" keeps the published policy; none is its
// label.
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
func (s *Web) policy(c *site.Call) error {
	page, head, err := s.domainPage(c, "domain_policy", "Simulate a policy")
	if err != nil {
		return err
	}
	name := head.Head.Name
	path, query := domainPath(name)+"/policy", c.R.URL.Query()
	period := ui.PeriodOf(query, s.options.Now())
	result, err := c.Team.Simulate(c.R.Context(), name, period.Days(), policyChange(query))
	if err != nil {
		return err
	}
	view := policyView{
		domainView: head, Form: c.Carrying(policyForm(path, query)), Result: result,
		Builder: ui.WithQuery(Prefix+"/tools/dmarc", nil, "domain", name, "record", result.Record),
		Period:  ui.NewPeriodChoice(path, query, period, s.options.Now()),
		Handled: handledTable(result, ui.WithQuery(path, query, "csv", "handled")),
	}
	if result.Record != "" {
		view.Record = &dmarcd.TXTRecord{Name: dmarc.QueryName(name), Value: result.Record}
	}
	var affected []insight.SimulatedSender
	for _, sender := range result.Senders {
		if sender.Affected > 0 {
			affected = append(affected, sender)
		}
	}
	view.Affected = affectedTable(affected, s.senderQuery(query, name))
	view.Affected.CSV = ui.WithQuery(path, query, "csv", "affected")
	return c.Render(http.StatusOK, page, view, view.Handled, view.Affected)
}

// handledTable compares what receivers did with what they would do.
func handledTable(result service.Simulation, csv string) ui.Table {
	t := ui.Table{
		ID: "handled", Caption: "What happens to mail", CSV: csv,
		Columns: []ui.Column{{Title: "Mail of the period", Wide: true}, {Title: "Delivered", Numeric: true}, {Title: "Spam folder", Numeric: true}, {Title: "Rejected", Numeric: true}},
	}
	for _, row := range []struct {
		title   string
		handled insight.Handled
	}{
		{"What receivers did", result.Observed},
		{"With this policy: current receivers (RFC 9989)", result.RFC9989},
		{"With this policy: older receivers (RFC 7489)", result.RFC7489},
	} {
		t.Rows = append(t.Rows, []ui.Cell{
			ui.Text(row.title), ui.Count(row.handled.Delivered), ui.Count(row.handled.Quarantined), ui.Count(row.handled.Rejected),
		})
	}
	return t
}

// affectedTable lists the senders whose mail would go to the spam folder or be rejected.
func affectedTable(senders []insight.SimulatedSender, asked mailQuery) ui.Table {
	t := senderTable("affected", "Affected senders", senders, asked)
	t.Columns[3].Title = "Affected"
	for i, sender := range senders {
		t.Rows[i][3] = ui.Count(sender.Affected)
	}
	t.Empty = ui.Empty{Title: "No sender is affected", Advice: "Under this policy, receivers would have delivered every message of the period."}
	return t
}
