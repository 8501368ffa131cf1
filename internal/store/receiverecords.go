package store

import (
	"fmt"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/shape"
)

// insertShares inserts the shares and records of a report, and counts them unless its state
// excludes it.
func (r *reception) insertShares(id dmarcd.ReportID, report *dmarcd.NewReport, state dmarcd.ReportState, owners []owner) error {
	numbers := make(map[string]int, len(report.Shares))
	day := dmarcd.DayOf(report.Begin)
	for n, share := range report.Shares {
		if owner := owners[n].id; owner != 0 && state == dmarcd.ReportCounted {
			r.changes.add(tallyKey{owner, day}, countsOf(report, share), id)
		}
		numbers[share.From] = n
		if err := r.addShare(id, n, report, share, owners[n]); err != nil {
			return err
		}
	}
	if report.EachRecord == nil {
		return nil
	}
	seen := make(selectors)
	err := r.team.eachRecord(report, id, owners, numbers, seen, r.records.add)
	if err == nil && state == dmarcd.ReportCounted {
		r.signers.merge(seen)
	}
	return err
}

func (r *reception) addShare(id dmarcd.ReportID, n int, report *dmarcd.NewReport, share dmarcd.Share, owner owner) error {
	from := nameText(share.From)
	values := append([]any{
		r.team.id, id, n, owner.id, report.Kind, dmarcd.DayOf(report.Begin), from, pathOf(from), pathOf(nameText(report.Domain)), share.Records,
	}, countValues(countsOf(report, share))...)
	return r.shares.add(values...)
}

// eachRecord calls add with the row of each record, and notes its selectors. numbers maps From
// domains to shares.
func (t *Team) eachRecord(report *dmarcd.NewReport, id dmarcd.ReportID, owners []owner, numbers map[string]int, seen selectors, add func(values ...any) error) error {
	day := dmarcd.DayOf(report.Begin)
	n := int64(0)
	for record, err := range report.EachRecord {
		if err != nil {
			return err
		}
		share, ok := numbers[record.HeaderFrom]
		if !ok {
			return fmt.Errorf("a record's From domain %q has no share", record.HeaderFrom)
		}
		// The driver's own types need no conversion.
		err = add(int64(t.id), int64(id), int64(share), n, record.Count, uncontrolled(record.Source), plain(string(record.Disposition)),
			plain(string(record.DKIM)), plain(string(record.SPF)), shape.EncodeRecord(record))
		if err != nil {
			return err
		}
		seen.note(owners[share], day, record.DKIMResults)
		n++
	}
	return nil
}
