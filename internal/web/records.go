package web

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// sentRecordTable shows records of several aggregate reports, with their report.
func (c *call) sentRecordTable(sent []dmarcd.SentRecord, csv string) ui.Table {
	records := make([]aggregate.Record, len(sent))
	for i, r := range sent {
		records[i] = r.Record
	}
	t := recordTable(records, csv)
	t.Columns = append(t.Columns, ui.Column{Title: "Report", Wide: true, Note: "Day (UTC)"})
	for i, r := range sent {
		t.Rows[i] = append(t.Rows[i], ui.LinkTo(r.Organization, c.link(Prefix+"/reports/"+r.Position.Report.String())).Noted(r.Day.String()))
	}
	return t
}

// recordTable shows the records of one aggregate report.
func recordTable(records []aggregate.Record, csv string) ui.Table {
	t := ui.Table{
		ID: "records", Caption: "Records", CSV: csv,
		Columns: []ui.Column{
			{Title: "Address"},
			{Title: "Messages", Numeric: true},
			{Title: "From domain", Wide: true, Note: "Envelope domain"},
			{Title: "SPF"},
			{Title: "DKIM"},
			{Title: "Receivers", Wide: true, Note: "Reasons"},
			{Title: "Results", Wide: true},
		},
		Empty: ui.Empty{Title: "No records", Advice: "The report has no records, or their retention has ended.", Action: ui.Link{}},
	}
	for _, r := range records {
		from := ui.Code(r.HeaderFrom)
		if r.EnvelopeFrom != "" && r.EnvelopeFrom != r.HeaderFrom {
			from.Before, from.Note = "envelope", r.EnvelopeFrom
		}
		t.Rows = append(t.Rows, []ui.Cell{
			ui.Code(r.Source), ui.Count(r.Count), from, ui.Badge(cmp.Or(string(r.SPF), "unknown")), ui.Badge(cmp.Or(string(r.DKIM), "unknown")),
			dispositionCell(r), ui.Text(authResults(r)),
		})
	}
	return t
}

// authResults lists the raw results, such as "SPF pass (example.com); DKIM pass (example.com, s1)".
func authResults(r aggregate.Record) string {
	var texts []string
	add := func(result string, about ...string) {
		about = slices.DeleteFunc(about, func(word string) bool { return word == "" })
		if len(about) > 0 {
			result += " (" + strings.Join(about, ", ") + ")"
		}
		texts = append(texts, result)
	}
	for _, result := range r.SPFResults {
		add("SPF "+string(result.Result), result.Domain)
	}
	for _, result := range r.DKIMResults {
		add("DKIM "+string(result.Result), result.Domain, result.Selector)
	}
	return strings.Join(texts, "; ")
}

// dispositionCell shows the action of a receiver. Reject is bad for a sender, although it
// is the best policy.
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
	var reasons []string
	for _, reason := range r.Reasons {
		text := reason.Type
		if reason.Comment != "" {
			text += ": " + reason.Comment
		}
		reasons = append(reasons, text)
	}
	return cell.Noted(strings.Join(reasons, "; "))
}
