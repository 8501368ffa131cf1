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

func recordPlaceOf(r *row) recordPlace {
	return recordPlace{r.Share.Day, r.Share.Report, r.Share.N, r.N}
}

// compareRecords puts the latest day first, and of a day the latest report.
func compareRecords(a, b recordPlace) int {
	return cmp.Or(cmp.Compare(b.Day, a.Day), cmp.Compare(b.Report, a.Report), cmp.Compare(a.Share, b.Share), cmp.Compare(a.N, b.N))
}

// Records returns records of the source that the query names by Group and Key, or of
// all mail, the latest first. A cursor that is none is a dmarcd.ErrInvalid.
func (m *Mail) Records(ctx context.Context, q Query) (RecordPage, error) {
	rows := m.of(q)
	places := make([]recordPlace, len(rows))
	for i := range rows {
		places[i] = recordPlaceOf(&rows[i])
	}
	slices.SortFunc(places, compareRecords)
	if q.After != "" {
		after, err := parseCursor[recordPlace](q.After)
		if err != nil {
			return RecordPage{}, err
		}
		first, seen := slices.BinarySearchFunc(places, after, compareRecords)
		if seen {
			first++
		}
		places = places[first:]
	}
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
