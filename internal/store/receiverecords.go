package store

import (
	"fmt"

	"github.com/dmarcd/dmarcd"
)

// insertShares inserts the shares of a report and its records, and counts them if its
// state says so.
func (r *reception) insertShares(id dmarcd.ReportID, report *dmarcd.NewReport, state dmarcd.ReportState, owners []owner) error {
	numbers := make(map[string]int, len(report.Shares))
	day, policyPath := dmarcd.DayOf(report.Begin), pathOf(plain(report.Domain))
	for n, share := range report.Shares {
		if owner := owners[n].id; owner != 0 && state == dmarcd.ReportCounted {
			r.changes.add(tallyKey{owner, day}, share.Counts)
		}
		numbers[share.From] = n
		from := plain(share.From)
		values := append([]any{
			id, n, r.team.id, owners[n].id, report.Kind, day, from, pathOf(from), policyPath, share.Records,
		}, countValues(share.Counts)...)
		if err := r.shares.add(values...); err != nil {
			return err
		}
	}
	if report.EachRecord == nil {
		return nil
	}
	seen, err := r.insertRecords(id, report, owners, numbers)
	if err == nil && state == dmarcd.ReportCounted {
		r.signers.merge(seen)
	}
	return err
}

// insertRecords inserts the records of a report and returns the selectors that they
// name.
func (r *reception) insertRecords(id dmarcd.ReportID, report *dmarcd.NewReport, owners []owner, numbers map[string]int) (selectors, error) {
	day, seen := dmarcd.DayOf(report.Begin), make(selectors)
	n := int64(0)
	for record, err := range report.EachRecord {
		if err != nil {
			return nil, err
		}
		share, ok := numbers[record.HeaderFrom]
		if !ok {
			return nil, fmt.Errorf("a record's From domain %q has no share", record.HeaderFrom)
		}
		// Values of the driver's own types need no conversion.
		err = r.records.add(int64(id), int64(share), n, uncontrolled(record.Source), record.Count, plain(string(record.Disposition)),
			plain(string(record.DKIM)), plain(string(record.SPF)), formatDetails(record))
		if err != nil {
			return nil, err
		}
		seen.note(owners[share], day, record.DKIMResults)
		n++
	}
	return seen, nil
}
