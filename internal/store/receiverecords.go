package store

import (
	"encoding/json"
	"fmt"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
)

// insertShares inserts the shares of a report and its records, and counts them.
func (r *reception) insertShares(id dmarcd.ReportID, report *dmarcd.NewReport, owners []owner) error {
	numbers := make(map[string]int, len(report.Shares))
	day, policyPath := dmarcd.DayOf(report.Begin), pathOf(plain(report.Domain))
	for n, share := range report.Shares {
		if owner := owners[n].id; owner != 0 {
			r.room.take(owner, share.Total())
			r.changes.add(owner, day, share.Counts)
		}
		numbers[share.From] = n
		from := plain(share.From)
		values := append([]any{
			id, n, r.team.id, owners[n].id, report.Kind, day, false, from, pathOf(from), policyPath, share.Records,
		}, countValues(share.Counts)...)
		if err := r.shares.add(values...); err != nil {
			return err
		}
	}
	if report.EachRecord == nil {
		return nil
	}
	return r.insertRecords(id, report, owners, numbers)
}

func (r *reception) insertRecords(id dmarcd.ReportID, report *dmarcd.NewReport, owners []owner, numbers map[string]int) error {
	day, seen := dmarcd.DayOf(report.Begin), make(selectors)
	n := int64(0)
	for record, err := range report.EachRecord {
		if err != nil {
			return err
		}
		share, ok := numbers[record.HeaderFrom]
		if !ok {
			return fmt.Errorf("a record's From domain %q has no share", record.HeaderFrom)
		}
		// Values of the driver's own types need no conversion.
		err = r.records.add(int64(id), int64(share), n, plain(record.Source), record.Count, plain(string(record.Disposition)),
			plain(string(record.DKIM)), plain(string(record.SPF)), formatDetails(record))
		if err != nil {
			return err
		}
		seen.note(owners[share], day, record.DKIMResults)
		n++
	}
	r.signers.merge(seen)
	return nil
}

// details is what a record says beside its columns. The names are short: there are
// millions of them.
type details struct {
	EnvelopeFrom string      `json:"f,omitempty"`
	EnvelopeTo   string      `json:"t,omitempty"`
	Reasons      [][2]string `json:"r,omitempty"` // type, comment
	DKIM         [][4]string `json:"d,omitempty"` // domain, selector, result, human result
	SPF          [][4]string `json:"s,omitempty"` // domain, scope, result, human result
	Disagrees    bool        `json:"x,omitempty"`
}

func formatDetails(record aggregate.Record) string {
	d := details{EnvelopeFrom: record.EnvelopeFrom, EnvelopeTo: record.EnvelopeTo, Disagrees: record.Disagrees}
	for _, reason := range record.Reasons {
		d.Reasons = append(d.Reasons, [2]string{reason.Type, reason.Comment})
	}
	for _, result := range record.DKIMResults {
		d.DKIM = append(d.DKIM, [4]string{result.Domain, result.Selector, string(result.Result), result.HumanResult})
	}
	for _, result := range record.SPFResults {
		d.SPF = append(d.SPF, [4]string{result.Domain, result.Scope, string(result.Result), result.HumanResult})
	}
	text, _ := json.Marshal(d) //nolint:errchkjson // strings and a truth value
	return string(text)
}

func parseDetails(text string, record *aggregate.Record) error {
	var d details
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return fmt.Errorf("read a record's details: %w", err)
	}
	record.EnvelopeFrom, record.EnvelopeTo, record.Disagrees = d.EnvelopeFrom, d.EnvelopeTo, d.Disagrees
	for _, reason := range d.Reasons {
		record.Reasons = append(record.Reasons, aggregate.Reason{Type: reason[0], Comment: reason[1]})
	}
	for _, r := range d.DKIM {
		record.DKIMResults = append(record.DKIMResults, aggregate.DKIMResult{Domain: r[0], Selector: r[1], Result: aggregate.Result(r[2]), HumanResult: r[3]})
	}
	for _, r := range d.SPF {
		record.SPFResults = append(record.SPFResults, aggregate.SPFResult{Domain: r[0], Scope: r[1], Result: aggregate.Result(r[2]), HumanResult: r[3]})
	}
	return nil
}
