package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// most is the greatest number that JSON tells exactly.
const most = 1<<53 - 1

func TestGreatestCount(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours, "other.example")
		greatest := report("1", ours, storetest.Failed(ours, most))
		in.wantReceived("stored duplicate", greatest, greatest)
		in.wantReceived("duplicate rejected stored", greatest, report("2", ours, storetest.Passed(ours, 1)),
			report("3", ours, storetest.Passed("other.example", most)))
		in.wantReceived("stored", report("4", ours, storetest.Passed(ours, 0)))
		in.wantCounted(map[string]dmarcd.Summary{ours: {NonCompliant: most}, "other.example": passed(most)})
		rejected, err := in.team.Rejected(in.Context(), 0, 10)
		in.must(err)
		if len(rejected) != 1 {
			in.Errorf("got %d rejected, want 1", len(rejected))
		}
		in.delete(ours)
		in.purge()
		in.add(ours)
		in.wantReceived("stored", report("2", ours, storetest.Passed(ours, 1)))
	})
}

func TestCountsThatFillUp(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		in.wantReceived("stored stored rejected stored",
			report("1", ours, storetest.Passed(ours, most-10)), report("2", ours, storetest.Passed(ours, 4)),
			report("3", ours, storetest.Passed(ours, 4), storetest.Failed("sub."+ours, 4)), report("4", ours, storetest.Passed(ours, 6)))
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(most)})
	})
}

// TestRecordsThatOverflow have more messages than a share can tell.
func TestRecordsThatOverflow(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		var records []aggregate.Record
		for range 1100 {
			records = append(records, storetest.Passed(ours, most))
		}
		in.wantReceived("unclaimed", report("1", ours, records...))
		in.add(ours)
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(most)})
	})
}

// TestClaimOfTooMuch leaves unclaimed what a domain cannot count.
func TestClaimOfTooMuch(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		var reports []dmarcd.NewReport
		for i := range 30 {
			reports = append(reports, report(fmt.Sprint(i), ours, storetest.Passed(ours, most)))
		}
		in.receive(reports...)
		in.receive(report("small", ours, storetest.Passed(ours, 0)), report("both", ours, storetest.Passed(ours, most), storetest.Failed(ours, most)))
		in.add(ours)
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(most)})
		unclaimed, err := in.team.Reports(in.Context(), store.ReportFilter{Unclaimed: true}, 0, 2000)
		in.must(err)
		if len(unclaimed) != 30 {
			in.Errorf("%d reports are unclaimed, want all but one of the great ones", len(unclaimed))
		}
	})
}

// TestTeamOfFullDomains has more messages than 64 bits hold.
func TestTeamOfFullDomains(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		const domains, fit = 520, 512
		var names []string
		var reports []dmarcd.NewReport
		for i := range domains {
			name := fmt.Sprintf("d%d.example", i)
			names = append(names, name)
			reports = append(reports, report(fmt.Sprint(i), name, storetest.Passed(name, most)))
		}
		_, err := in.team.AddDomains(in.Context(), names, time.Time{})
		in.must(err)
		became := map[dmarcd.ReceiptStatus]int{}
		for _, receipt := range in.receive(reports...) {
			became[receipt.Status]++
		}
		if became[dmarcd.Stored] != fit || became[dmarcd.Refused] != domains-fit {
			in.Errorf("got %v; want %d stored and the rest rejected", became, fit)
		}
		in.sound()
		sum, err := in.team.Summary(in.Context(), dmarcd.Days{})
		in.must(err)
		if want := passed(fit * most); sum != want {
			in.Errorf("got %+v, want %+v", sum, want)
		}
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
