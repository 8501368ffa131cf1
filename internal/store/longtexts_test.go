package store_test

import (
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestLongTextsByPage reads records with long texts, hot and cold. A page has some megabytes.
func TestLongTextsByPage(t *testing.T) {
	if testing.Short() {
		return
	}
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		const records, size = 10, 1 << 20
		var long []aggregate.Record
		for i := range records {
			r := storetest.Passed(ours, int64(i+1))
			r.Reasons = []aggregate.Reason{{Type: "other", Comment: strings.Repeat("x", size)}}
			long = append(long, r)
		}
		id := in.receive(storetest.Aggregate("long", ours, today, long...))[0].ID
		for _, state := range []string{"hot", "cold"} {
			read, pages := 0, 0
			for after, more := (store.RecordCursor{}), true; more; pages++ {
				var page []store.Record
				var err error
				page, more, err = in.team.Records(in.Context(), id, after, 1000)
				in.must(err)
				if len(page) == 0 || len(page) > 6 {
					in.Fatalf("%s: got a page of %d records of 1 MiB, want a few", state, len(page))
				}
				read, after = read+len(page), page[len(page)-1].Cursor
			}
			if read != records || pages < 2 {
				in.Errorf("%s: got %d records on %d pages, want %d", state, read, pages, records)
			}
			in.freeze()
		}
	})
}
