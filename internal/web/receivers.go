package web

import (
	"context"
	"strconv"

	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// receiverView is what receivers do with failing mail from one kind of name.
type receiverView struct {
	// Name is an example, What describes the kind.
	Name, What string
	// New is the action under RFC 9989, Old that under RFC 7489.
	New, Old receiverAction
}

// receiverAction is the requested action.
type receiverAction struct {
	// Policy is none, quarantine, reject or "" for no policy.
	Policy string
	Why    string
}

// receiverViews evaluates the record under both RFCs, with a DNS that contains only this
// record.
func receiverViews(ctx context.Context, domain, record string) []receiverView {
	views := []receiverView{
		{Name: domain, What: "the domain itself"},
		{Name: "news." + domain, What: "an existing subdomain"},
		{Name: "no-such-name." + domain, What: "a non-existent subdomain"},
	}
	zone := recordZone{domain: domain, record: record, exists: views[1].Name}
	for i, v := range views {
		views[i].New = newAction(dmarc.Discover(ctx, zone, v.Name))
		views[i].Old = legacyAction(dmarc.DiscoverLegacy(ctx, zone, v.Name))
	}
	return views
}

// receiverTable shows the actions under both RFCs.
func receiverTable(views []receiverView, csv string) ui.Table {
	t := ui.Table{
		ID: "receivers", Caption: "What receivers do", CSV: csv,
		Columns: []ui.Column{
			{Title: "Mail from", Wide: true, Note: "Which names"},
			{Title: "Under RFC 9989", Wide: true, Note: "Why (RFC 9989)"},
			{Title: "Under RFC 7489", Wide: true, Note: "Why (RFC 7489)"},
		},
	}
	for _, v := range views {
		t.Rows = append(t.Rows, []ui.Cell{
			ui.Text(v.Name).Noted(v.What), policyCell(v.New.Policy).Noted(v.New.Why), policyCell(v.Old.Policy).Noted(v.Old.Why),
		})
	}
	return t
}

func newAction(d dmarc.Discovery) receiverAction {
	if d.Policy == dmarc.Unstated {
		return receiverAction{"", "The record is unusable, so no policy applies."}
	}
	a := receiverAction{Policy: d.Applied.String(), Why: "Set by the tag " + d.Source + "."}
	if d.Record.State == dmarc.ActsAsNone {
		a.Why = "The record is invalid and acts as p=none, because it has a report address."
	}
	if d.Applied != d.Policy {
		a.Why = "The tag " + d.Source + " sets " + d.Policy.String() + "; t=y reduces it by one level."
	}
	return a
}

func legacyAction(d dmarc.LegacyDiscovery) receiverAction {
	switch {
	case d.Record == nil:
		return receiverAction{"", "These receivers query only the name itself and " + d.Organization + ", and find no record."}
	case d.Policy == dmarc.Unstated:
		return receiverAction{"", "The record is unusable, so no policy applies."}
	}
	tag := "p"
	if d.Domain != d.RecordDomain && d.Record.SP != dmarc.Unstated {
		tag = "sp"
	}
	a := receiverAction{Policy: d.Policy.String(), Why: "Set by the tag " + tag + "."}
	if d.Record.NP != dmarc.Unstated || d.Record.Testing {
		a.Why += " These receivers ignore np and t."
	}
	if d.Percent < 100 {
		a.Why = "For " + strconv.Itoa(d.Percent) + " % of failing mail (pct); the rest is treated one level weaker."
	}
	return a
}

// recordZone is a DNS in which one domain has a DMARC record and one subdomain. It
// implements dns.Resolver.
type recordZone struct{ domain, record, exists string }

// Resolve implements dns.Resolver.
func (z recordZone) Resolve(_ context.Context, q dns.Question) dns.Answer {
	answer := dns.Answer{Question: q, Outcome: dns.NoSuchName}
	switch {
	case q.Name == dmarc.QueryName(z.domain) && q.Type == dns.TXT:
		answer.Outcome = dns.Data
		answer.Records = []dns.Record{{Name: q.Name, Type: dns.TXT, Text: []string{z.record}}}
	case q.Name == z.domain || q.Name == z.exists:
		answer.Outcome = dns.NoData
	}
	return answer
}
