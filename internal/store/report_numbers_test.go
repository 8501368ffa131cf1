package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// most is the largest count of a record.
const most = 1<<53 - 1

func TestImplausibleReportsAreHeld(t *testing.T) {
	million := func(records int, count int64) (all []aggregate.Record) {
		for range records {
			all = append(all, storetest.Passed(ours, count))
		}
		return all
	}
	rows := []struct {
		name    string
		records []aggregate.Record
		want    dmarcd.ReceiptStatus
	}{
		{"largest record", million(1, 1_000_000_000), dmarcd.Stored},
		{"a record too large", million(1, 1_000_000_001), dmarcd.Held},
		{"the largest that can be written", million(1, most), dmarcd.Held},
		{"a small record beside it", append(million(1, most), storetest.Failed(ours, 1)), dmarcd.Held},
		{"largest report", million(10, 1_000_000_000), dmarcd.Stored},
		{"a report too large", append(million(10, 1_000_000_000), storetest.Failed(ours, 1)), dmarcd.Held},
	}
	eachInbox(t, func(in *inbox) {
		for _, row := range rows {
			in.row(row.name, func(in *inbox) {
				in.add(ours)
				odd := report("1", ours, row.records...)
				receipt := in.receive(odd)[0]
				if receipt.Status != row.want || (receipt.Reason != "") != (row.want == dmarcd.Held) {
					in.Errorf("got %s, %q; want %s", receipt.Status, receipt.Reason, row.want)
				}
				if row.want != dmarcd.Held {
					return
				}
				in.wantReceived("duplicate", odd)
				stored := musttest.Get(in.team.Report(in.Context(), receipt.ID))(in)
				if stored.State != dmarcd.ReportHeld || stored.HeldReason != receipt.Reason {
					in.Errorf("stored as %s, %q", stored.State, stored.HeldReason)
				}
				musttest.Get(in.team.ReportOriginal(in.Context(), receipt.ID))(in)
				// It neither blocks the real report nor stops the counting.
				in.wantReceived("stored", report("1", ours, storetest.Passed(ours, 5)))
				in.wantReceived("held", report("1", ours, storetest.Passed(ours, most), storetest.Passed(ours, 7)))
				in.wantReceived("stored", report("2", ours, storetest.Failed(ours, 2)))
				in.wantCounted(map[string]dmarcd.Summary{ours: {Compliant: 5, NonCompliant: 2}})
			})
		}
	})
}

func TestHeldReportOfNoDomain(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.wantReceived("held", report("1", ours, storetest.Passed(ours, most)))
		in.add(ours)
		in.wantCounted(map[string]dmarcd.Summary{ours: {}})
	})
}

func TestDaysFarAway(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		for i, begin := range []time.Time{{}, time.Unix(0, 0), time.Unix(-1, 0), time.Unix(-1<<55, 0), time.Unix(1<<62, 0), time.Unix(1<<63-1, 0)} {
			odd := report(fmt.Sprint(i), ours, storetest.Passed(ours, 1))
			odd.Begin, odd.End = begin, begin
			in.wantReceived("stored", odd)
		}
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(6)})
		in.expire(store.Retention{Records: ofDays(1), Counters: ofDays(2)})
	})
}
