package insight

import (
	"cmp"
	"context"
	"fmt"

	"github.com/dmarcd/dmarcd"
)

// RecordPage is a part of the records.
type RecordPage struct {
	Records []dmarcd.SentRecord
	// Next is what to ask for as After, "" at the end.
	Next string
}

// recordPlace is where a record stands in the list.
type recordPlace struct {
	Day    dmarcd.Day      `json:"d"`
	Report dmarcd.ReportID `json:"r"`
	Share  int             `json:"s"`
	N      int             `json:"n"`
}

// compareRecords puts the latest day first, and of a day the latest report.
func compareRecords(a, b recordPlace) int {
	return cmp.Or(cmp.Compare(b.Day, a.Day), cmp.Compare(b.Report, a.Report), cmp.Compare(a.Share, b.Share), cmp.Compare(a.N, b.N))
}

// Records returns records of the source that the query names by Group and Key, or of
// all mail, the latest first. A cursor that is none is a dmarcd.ErrInvalid.
func (m *Mail) Records(ctx context.Context, q Query) (RecordPage, error) {
	var after *recordPlace
	if q.After != "" {
		place, err := parseCursor[recordPlace](q.After)
		if err != nil {
			return RecordPage{}, err
		}
		after = &place
	}
	places := m.recordPlaces(m.of(q), after, q.Limit+1)
	var page RecordPage
	if len(places) > q.Limit {
		places = places[:q.Limit]
		page.Next = formatCursor(places[q.Limit-1])
	}
	wanted := make([]dmarcd.SentPlace, len(places))
	for i, p := range places {
		wanted[i] = dmarcd.SentPlace{Report: p.Report, Share: p.Share, N: p.N}
	}
	var err error
	if page.Records, err = m.records.SentRecords(ctx, wanted); err != nil {
		return RecordPage{}, fmt.Errorf("read records: %w", err)
	}
	return page, nil
}

// recordPlaces returns the places of the first records after one, in their order. The
// records of a share are in it already.
func (m *Mail) recordPlaces(of *selection, after *recordPlace, limit int) []recordPlace {
	begin := func(share int) recordPlace {
		s := &m.sent.Shares[share]
		return recordPlace{Day: s.Day, Report: s.Report, Share: s.N}
	}
	var shares []int
	for i, sum := range of.sums(byShare) {
		if sum.seen && (after == nil || compareRecords(begin(i), recordPlace{after.Day, after.Report, after.Share, 0}) >= 0) {
			shares = append(shares, i)
		}
	}
	// Each has a record, but all of the first may be before.
	shares = foremost(shares, limit+1, func(a, b int) int { return compareRecords(begin(a), begin(b)) })
	var places []recordPlace
	for _, share := range shares {
		place, records := begin(share), m.sent.Shares[share].Records
		for i := range records {
			place.N = int(records[i].N)
			if !of.has(share, &records[i]) || after != nil && compareRecords(place, *after) <= 0 {
				continue
			}
			if places = append(places, place); len(places) == limit {
				return places
			}
		}
	}
	return places
}
