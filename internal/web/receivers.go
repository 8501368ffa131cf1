package web

import (
	"context"
	"strconv"

	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// receiverTable shows what receivers do with failing mail under both RFCs, with a DNS that contains
// only this record.
func receiverTable(ctx context.Context, domain, record, csv string) ui.Table {
	t := ui.Table{
		ID: "receivers", Caption: "What receivers do", CSV: csv,
		Columns: []ui.Column{
			{Title: "Mail from", Wide: true, Note: "Which names"},
			{Title: "Under RFC 9989", Wide: true, Note: "Why (RFC 9989)"},
			{Title: "Under RFC 7489", Wide: true, Note: "Why (RFC 7489)"},
		},
	}
	existing := "news." + domain
	zone := recordZone{domain: domain, record: record, exists: existing}
	for _, of := range []struct{ name, what string }{
		{domain, "the domain itself"}, {existing, "an existing subdomain"}, {"no-such-name." + domain, "a non-existent subdomain"},
	} {
		t.Rows = append(t.Rows, []ui.Cell{
			ui.Text(of.name).Noted(of.what), newAction(dmarc.Discover(ctx, zone, of.name)), legacyAction(dmarc.DiscoverLegacy(ctx, zone, of.name)),
		})
	}
	return t
}

// newAction is the action under RFC 9989, and why.
func newAction(d dmarc.Discovery) ui.Cell {
	if d.Policy == dmarc.Unstated {
		return policyCell("").Noted("The record is unusable, so no policy applies.")
	}
	why := "Set by the tag " + d.Source + "."
	if d.Record.State == dmarc.ActsAsNone {
		why = "The record is invalid and acts as p=none, because it has a report address."
	}
	if d.Applied != d.Policy {
		why = "The tag " + d.Source + " sets " + d.Policy.String() + "; t=y reduces it by one level."
	}
	return policyCell(d.Applied.String()).Noted(why)
}

// legacyAction is the action under RFC 7489, and why.
func legacyAction(d dmarc.LegacyDiscovery) ui.Cell {
	switch {
	case d.Record == nil:
		return policyCell("").Noted("These receivers query only the name itself and " + d.Organization + ", and find no record.")
	case d.Policy == dmarc.Unstated:
		return policyCell("").Noted("The record is unusable, so no policy applies.")
	}
	tag := "p"
	if d.Domain != d.RecordDomain && d.Record.SP != dmarc.Unstated {
		tag = "sp"
	}
	why := "Set by the tag " + tag + "."
	if d.Record.NP != dmarc.Unstated || d.Record.Testing {
		why += " These receivers ignore np and t."
	}
	if d.Percent < 100 {
		why = "For " + strconv.Itoa(d.Percent) + " % of failing mail (pct); the rest is treated one level weaker."
	}
	return policyCell(d.Policy.String()).Noted(why)
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
