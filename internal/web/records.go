package web

import (
	"cmp"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// sentRecordTable shows records of several aggregate reports, with their report.
func sentRecordTable(c *site.Call, sent []dmarcd.SentRecord, csv string) ui.Table {
	records := make([]aggregate.Record, len(sent))
	for i, r := range sent {
		records[i] = r.Record
	}
	t := recordTable(c, records, nil, csv)
	t.Columns = append(t.Columns, ui.Column{Title: "Report", Wide: true, Note: "Day (UTC)"})
	for i, r := range sent {
		t.Rows[i] = append(t.Rows[i], ui.LinkTo(r.Organization, c.Link(Prefix+"/reports/"+r.Position.Report.String())).Noted(phrase.Day(r.Day)))
	}
	return t
}

// recordTable shows records of aggregate reports. sender returns the sender of an address as a link;
// nil omits the column. In a file, what a page shows on demand has columns.
func recordTable(c *site.Call, records []aggregate.Record, sender func(address string) (ui.Link, bool), csv string) ui.Table {
	t := ui.Table{
		ID: "records", Caption: "Records", CSV: csv,
		Columns: []ui.Column{
			{Title: "Sender", Wide: true},
			{Title: "Address"},
			{Title: "Messages", Numeric: true},
			{Title: "DMARC"},
			{Title: "SPF aligned"},
			{Title: "DKIM aligned"},
			{Title: "Receiver"},
			{Title: "Details", Wide: true},
		},
		Empty: ui.Empty{Title: "No records", Advice: "The report has no records, or their retention has ended.", Action: ui.Link{}},
	}
	file := c.WantsCSV(t.ID)
	if file {
		t.Columns = append(t.Columns, ui.Column{Title: "From domain"}, ui.Column{Title: "Envelope domain"}, ui.Column{Title: "Reasons"})
	}
	for _, r := range records {
		from := ui.Text("Unknown")
		if sender != nil {
			if link, known := sender(r.Source); known {
				from = ui.LinkTo(link.Text, link.Href)
			}
		}
		row := []ui.Cell{
			from, ui.Code(r.Source), ui.Count(r.Count), passes(r), alignedCell(r.SPF, spfPasses(r), ""), alignedCell(r.DKIM, dkimPasses(r), notSigned(r)),
			dispositionCell(r), ui.Details("Details", recordDetails(r)),
		}
		if file {
			row = append(row, ui.Text(r.HeaderFrom), ui.Text(r.EnvelopeFrom), ui.Text(strings.Join(reasons(r), "; ")))
		}
		t.Rows = append(t.Rows, row)
	}
	if sender == nil {
		return t.Without("Sender")
	}
	return t
}

// reasons are the reasons of a receiver for not applying the policy.
func reasons(r aggregate.Record) []string {
	texts := make([]string, len(r.Reasons))
	for i, reason := range r.Reasons {
		texts[i] = reason.Type
		if reason.Comment != "" {
			texts[i] += ": " + reason.Comment
		}
	}
	return texts
}

// passes says whether a record passes DMARC.
func passes(r aggregate.Record) ui.Cell {
	if r.SPF == aggregate.ResultPass || r.DKIM == aggregate.ResultPass {
		return ui.Cell{Kind: ui.CellBadge, Text: "passes", Tone: "good"}
	}
	return ui.Cell{Kind: ui.CellBadge, Text: "fails", Tone: "bad"}
}

// alignedCell shows the result of a method for the From domain. other is the domain for which it
// passes, "" if it passes for none, and absent says that the method was not used.
func alignedCell(aligned aggregate.Result, other, absent string) ui.Cell {
	switch {
	case aligned == aggregate.ResultPass:
		return ui.Cell{Kind: ui.CellBadge, Text: "pass", Tone: "good"}
	case other != "":
		return ui.Cell{Kind: ui.CellBadge, Text: "not aligned", Tone: "warning"}
	case absent != "":
		return ui.Cell{Kind: ui.CellBadge, Text: absent, Tone: "warning"}
	}
	return ui.Cell{Kind: ui.CellBadge, Text: cmp.Or(string(aligned), "unknown"), Tone: ui.Tone(string(aligned))}
}

func spfPasses(r aggregate.Record) string {
	for _, result := range r.SPFResults {
		if result.Result == aggregate.ResultPass {
			return cmp.Or(result.Domain, "another domain")
		}
	}
	return ""
}

func dkimPasses(r aggregate.Record) string {
	for _, result := range r.DKIMResults {
		if result.Result == aggregate.ResultPass {
			return cmp.Or(result.Domain, "another domain")
		}
	}
	return ""
}

func notSigned(r aggregate.Record) string {
	if len(r.DKIMResults) == 0 {
		return "not signed"
	}
	return ""
}

// recordDetails are the results of each method, and what the receiver says about the mail. A result
// that passes says whether it is aligned.
func recordDetails(r aggregate.Record) []string {
	var texts []string
	add := func(method, result, domain, selector string, counts aggregate.Result) {
		text := method + " " + cmp.Or(result, "unknown")
		if domain != "" {
			text += " for " + domain
		}
		if selector != "" {
			text += ", selector " + selector
		}
		if result == string(aggregate.ResultPass) {
			if counts == aggregate.ResultPass && dmarc.LegacyOrganization(domain) == dmarc.LegacyOrganization(r.HeaderFrom) {
				text += ", aligned"
			} else {
				text += ", not aligned with " + cmp.Or(r.HeaderFrom, "the From domain")
			}
		}
		texts = append(texts, text)
	}
	if r.HeaderFrom != "" {
		texts = append(texts, "From domain: "+r.HeaderFrom)
	}
	for _, result := range r.SPFResults {
		add("SPF", string(result.Result), result.Domain, "", r.SPF)
	}
	for _, result := range r.DKIMResults {
		add("DKIM", string(result.Result), result.Domain, result.Selector, r.DKIM)
	}
	if r.EnvelopeFrom != "" && r.EnvelopeFrom != r.HeaderFrom {
		texts = append(texts, "Envelope domain: "+r.EnvelopeFrom)
	}
	for _, reason := range reasons(r) {
		texts = append(texts, "The receiver's reason: "+reason)
	}
	return texts
}

// dispositionCell shows the action of a receiver. Reject has the tone bad here: the sender's mail
// was lost, although p=reject is the best policy.
func dispositionCell(r aggregate.Record) ui.Cell {
	cell := ui.Cell{Kind: ui.CellBadge, Text: string(r.Disposition)}
	switch cell.Text {
	case "none", "pass":
		cell.Text = "delivered"
	case "quarantine":
		cell.Text, cell.Tone = "spam folder", "warning"
	case "reject":
		cell.Text, cell.Tone = "rejected", "bad"
	}
	return cell
}

// parseRecordCursor parses a position in a report; "" is the start.
func parseRecordCursor(after string) (cursor service.RecordCursor, err error) {
	if after != "" {
		cursor.Begun = true
		cursor.Share, cursor.N, err = wire.ParseRecordCursor(after)
	}
	return cursor, err
}
