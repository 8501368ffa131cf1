package insight

import (
	"cmp"
	"context"
	"fmt"
	"slices"

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
	places := m.recordPlaces(m.of(q).parts, after, q.Limit+1)
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
func (m *Mail) recordPlaces(parts []part, after *recordPlace, limit int) []recordPlace {
	first := func(p part) recordPlace {
		share := &m.sent.Shares[p.share]
		return recordPlace{Day: share.Day, Report: share.Report, Share: share.N}
	}
	var places []recordPlace
	for _, p := range slices.SortedFunc(slices.Values(parts), func(a, b part) int { return compareRecords(first(a), first(b)) }) {
		place := first(p)
		for i := range p.records {
			place.N = int(p.records[i].N)
			if after != nil && compareRecords(place, *after) <= 0 {
				continue
			}
			if places = append(places, place); len(places) == limit {
				return places
			}
		}
	}
	return places
}
