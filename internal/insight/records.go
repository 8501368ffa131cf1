package insight

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

// RecordPage is a part of the records.
type RecordPage struct {
	Records []dmarcd.SentRecord
	// Next is what to ask for as After, "" at the end.
	Next string
}

// recordPosition is where a record is in the list.
type recordPosition struct {
	Day    dmarcd.Day      `json:"d"`
	Report dmarcd.ReportID `json:"r"`
	Share  int             `json:"s"`
	N      int             `json:"n"`
}

// compareRecords puts the latest day first, and of a day the latest report.
func compareRecords(a, b recordPosition) int {
	return cmp.Or(cmp.Compare(b.Day, a.Day), cmp.Compare(b.Report, a.Report), cmp.Compare(a.Share, b.Share), cmp.Compare(a.N, b.N))
}

// Records returns records of the row that the query names by Group and Key, or of
// all mail, the latest first. A cursor that is none is a dmarcd.ErrInvalid. The caller must not
// change the page.
func (m *Mail) Records(ctx context.Context, q Query) (RecordPage, error) {
	return answered(m, "records", q, func() (RecordPage, error) { return m.listRecords(ctx, q) })
}

func (m *Mail) listRecords(ctx context.Context, q Query) (RecordPage, error) {
	var after *recordPosition
	if q.After != "" {
		position, err := parseCursor[recordPosition](q.After)
		if err != nil {
			return RecordPage{}, err
		}
		after = &position
	}
	positions, err := m.recordPositions(ctx, q, after)
	if err != nil {
		return RecordPage{}, err
	}
	var page RecordPage
	if len(positions) > q.Limit {
		positions = positions[:q.Limit]
		page.Next = formatCursor(positions[q.Limit-1])
	}
	wanted := make([]dmarcd.SentPosition, len(positions))
	for i, p := range positions {
		wanted[i] = dmarcd.SentPosition{Report: p.Report, Share: p.Share, N: p.N}
	}
	if page.Records, err = m.team.SentRecords(ctx, wanted); err != nil {
		return RecordPage{}, fmt.Errorf("read records: %w", err)
	}
	return page, nil
}

// recordPositions returns the positions of the first records after one, one more than a page
// has, in their order. It reads the last days first, and then twice as many each time.
func (m *Mail) recordPositions(ctx context.Context, q Query, after *recordPosition) ([]recordPosition, error) {
	if err := m.count(ctx); err != nil { // it knows the days, too
		return nil, err
	}
	var match *grouping
	if q.Key != "" {
		match = m.only(q.Group, q.Key)
	}
	found := &recordList{after: after, limit: q.Limit + 1}
	days := slices.Sorted(maps.Keys(m.tally.days))
	for n := 1; len(days) > 0 && len(found.positions) < found.limit; n *= 2 {
		from := max(len(days)-n, 0)
		first, last := days[from], days[len(days)-1]
		days = days[:from]
		if after != nil && first > after.Day {
			continue // all of it is before
		}
		if err := m.scan(ctx, dmarcd.Days{From: &first, To: &last}, match, found); err != nil {
			return nil, err
		}
		found.cut()
	}
	return found.positions, nil
}

// recordList gathers the positions of the first records after one.
type recordList struct {
	after     *recordPosition
	limit     int
	positions []recordPosition
}

func (*recordList) begin(*rollup.Block) {}

func (l *recordList) add(share *rollup.Share, records []rollup.Record) {
	for i := range records {
		position := recordPosition{Day: share.Day, Report: share.Report, Share: share.N, N: int(records[i].N)}
		if l.after != nil && compareRecords(position, *l.after) <= 0 {
			continue
		}
		if l.positions = append(l.positions, position); len(l.positions) >= 2*l.limit+1000 {
			l.cut()
		}
	}
}

func (l *recordList) cut() { l.positions = top(l.positions, l.limit, compareRecords) }
