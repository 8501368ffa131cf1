package web

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// dmarcBuilder builds DMARC records.
var dmarcBuilder = builder{
	part: service.PartDMARC, name: "DMARC", version: "v=DMARC1", first: "p",
	lead:   "Tells receivers what to do with mail that fails DMARC, and where to send reports.",
	fields: dmarcFields,
	start: func(c *site.Call, domain dmarcd.Domain, _ *facts.Facts) (string, error) {
		return c.Team.ProposedRecord(c.R.Context(), domain.Name)
	},
	text: func(base string, query url.Values) string {
		record, _ := dmarc.Parse(base)
		return record.Edit(formTags(query)...)
	},
	explain: explainDMARC,
}

// explainDMARC adds what a DMARC record means, and what it takes away from the published one.
func explainDMARC(c *site.Call, view *builderView) error {
	record, ok := dmarc.Parse(view.text)
	if !ok {
		return nil
	}
	const path = Prefix + "/tools/dmarc"
	query := c.R.URL.Query()
	domain, err := c.Team.Domain(c.R.Context(), view.Domain)
	if err != nil && !errors.Is(err, dmarcd.ErrNotFound) {
		return err
	}
	if domain.RecordDomain == domain.Name {
		published, _ := dmarc.Parse(domain.Record)
		view.Warnings = service.RecordWarnings(published, record)
	}
	view.Tags = tagTable(record, ui.WithQuery(path, query, "csv", "tags"))
	view.Views = receiverTable(c.R.Context(), view.Domain, view.text, ui.WithQuery(path, query, "csv", "receivers"))
	return nil
}

// formTags returns the tags of the form. Tags with their default value are empty.
func formTags(query url.Values) []dmarc.Tag {
	var tags []dmarc.Tag
	add := func(tag, value, standard string) {
		if value == standard {
			value = ""
		}
		tags = append(tags, dmarc.Tag{Name: tag, Value: value})
	}
	add("p", oneOf(query.Get("p"), "none", "quarantine", "reject"), "")
	add("sp", oneOf(query.Get("sp"), "", "none", "quarantine", "reject"), "")
	add("np", oneOf(query.Get("np"), "", "none", "quarantine", "reject"), "")
	add("adkim", oneOf(query.Get("adkim"), "r", "s"), "r")
	add("aspf", oneOf(query.Get("aspf"), "r", "s"), "r")
	add("psd", oneOf(query.Get("psd"), "u", "y", "n"), "u")
	add("t", oneOf(query.Get("t"), "n", "y"), "n")
	add("rua", destinations(query.Get("rua")), "")
	ruf := destinations(query.Get("ruf"))
	add("ruf", ruf, "")
	fo := oneOf(query.Get("fo"), "0", "1", "d", "s", "1:d:s")
	if ruf == "" { // without destinations fo is ignored (RFC 9989 §4.7)
		fo = "0"
	}
	add("fo", fo, "0")
	return tags
}

// oneOf returns word if it is allowed, otherwise the first allowed word.
func oneOf(word string, allowed ...string) string {
	for _, a := range allowed {
		if a == word {
			return word
		}
	}
	return allowed[0]
}

// destinations converts addresses with any separators to URIs. It drops characters that
// would end the tag or the record.
func destinations(written string) string {
	var uris []string
	for _, address := range strings.FieldsFunc(written, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\r' || r == ';' }) {
		if !strings.Contains(address, ":") {
			address = "mailto:" + address
		}
		uris = append(uris, address)
	}
	return strings.Join(uris, ",")
}

// dmarcFields are the fields of the form for a record.
func dmarcFields(text string) []ui.Field {
	r, _ := dmarc.Parse(text)
	policy := func(none string) []ui.Choice {
		list := []ui.Choice{{Value: "none", Label: "none: deliver and report"}, {Value: "quarantine", Label: "quarantine: put into the spam folder"}, {Value: "reject", Label: "reject: do not accept"}}
		if none != "" {
			list = append([]ui.Choice{{Value: "", Label: none}}, list...)
		}
		return list
	}
	testing := "n"
	if r.Testing {
		testing = "y"
	}
	mode := []ui.Choice{{Value: "r", Label: "relaxed: same organization"}, {Value: "s", Label: "strict: same name"}}
	return []ui.Field{
		{Name: "p", Label: "Policy (p)", Type: "select", Value: r.P.String(), Choices: policy("")},
		{Name: "sp", Label: "For subdomains (sp)", Type: "select", Value: r.SP.String(), Choices: policy("same as the domain")},
		{Name: "np", Label: "For non-existent subdomains (np)", Type: "select", Value: r.NP.String(), Choices: policy("same as subdomains")},
		{Name: "rua", Label: "Aggregate reports to (rua)", Type: "text", Value: addresses(r.RUA), Placeholder: "dmarc@example.com", Autocomplete: "off"},
		{Name: "ruf", Label: "Failure reports to (ruf)", Type: "text", Value: addresses(r.RUF), Autocomplete: "off"},
		{Name: "fo", Label: "Failure reports when (fo)", Type: "select", Value: r.FO.String(), Choices: []ui.Choice{
			{Value: "0", Label: "neither SPF nor DKIM passes"}, {Value: "1", Label: "SPF or DKIM does not pass"}, {Value: "d", Label: "a DKIM signature fails"}, {Value: "s", Label: "SPF fails"}, {Value: "1:d:s", Label: "any of these"},
		}},
		{Name: "t", Label: "Testing (t)", Type: "select", Value: testing, Choices: []ui.Choice{{Value: "n", Label: "no: apply the policy"}, {Value: "y", Label: "yes: apply one level less"}}},
		{Name: "adkim", Label: "DKIM alignment (adkim)", Type: "select", Value: r.ADKIM.String(), Choices: mode},
		{Name: "aspf", Label: "SPF alignment (aspf)", Type: "select", Value: r.ASPF.String(), Choices: mode},
		{Name: "psd", Label: "Public suffix (psd)", Type: "select", Value: r.PSD.String(), Choices: []ui.Choice{
			{Value: "u", Label: "not specified"}, {Value: "n", Label: "no: an organizational domain"}, {Value: "y", Label: "yes: others register names below it"},
		}},
	}
}

func addresses(uris []dmarc.URI) string {
	list := make([]string, len(uris))
	for i, u := range uris {
		list[i] = strings.TrimPrefix(u.String(), "mailto:")
	}
	return strings.Join(list, ", ")
}

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

// recordZone is a dns.Resolver for one domain with a DMARC record and one existing subdomain.
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
