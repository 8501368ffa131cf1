package web

import (
	"strings"

	"github.com/dmarcd/dmarcd/aggregate"
)

// newRecord returns a record for display, without its report.
func newRecord(r aggregate.Record) Record {
	record := Record{
		Address: r.Source, Messages: r.Count, Disposition: string(r.Disposition), DKIM: string(r.DKIM), SPF: string(r.SPF),
		HeaderFrom: r.HeaderFrom, EnvelopeFrom: r.EnvelopeFrom,
	}
	for _, result := range r.DKIMResults {
		record.DKIMResults = append(record.DKIMResults, resultText(string(result.Result), result.Domain, result.Selector))
	}
	for _, result := range r.SPFResults {
		record.SPFResults = append(record.SPFResults, resultText(string(result.Result), result.Domain))
	}
	for _, reason := range r.Reasons {
		text := reason.Type
		if reason.Comment != "" {
			text += ": " + reason.Comment
		}
		record.Reasons = append(record.Reasons, text)
	}
	return record
}

// resultText returns a result with its details, such as "pass (example.com, s1)".
func resultText(result string, about ...string) string {
	var told []string
	for _, word := range about {
		if word != "" {
			told = append(told, word)
		}
	}
	if len(told) == 0 {
		return result
	}
	return result + " (" + strings.Join(told, ", ") + ")"
}
