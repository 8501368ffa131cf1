package store_test

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/shape"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

const ours = "example.com"

// genuinely returns the delivery of a report by mail with this authentication result.
func genuinely(answer dmarcd.Genuine, report dmarcd.NewReport) *dmarcd.Delivery {
	delivery := storetest.Delivery(report)
	delivery.Intake = dmarcd.IntakeSMTP
	authentication := dmarcd.Authentication{Genuine: answer, From: "receiver.example", Reason: "a test"}
	if answer == dmarcd.GenuineYes {
		authentication.Domain = "receiver.example"
	}
	delivery.SetAuthentication(authentication)
	return delivery
}

func TestSameReportCountsOnce(t *testing.T) {
	one, two := report("1", ours, storetest.Passed(ours, 5)), report("2", ours, storetest.Failed(ours, 3))
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		in.wantReceived("stored duplicate stored", one, one, two)
		in.wantReceived("duplicate duplicate", two, one)
		in.wantCounted(map[string]dmarcd.Summary{ours: {Compliant: 5, NonCompliant: 3}})
		first := in.receive(one)[0]
		again := in.receive(one)[0]
		if first.ID != again.ID || first.ID == 0 {
			in.Errorf("a duplicate has the id %s, want that of the report, %s", again.ID, first.ID)
		}
		reports := musttest.Get(in.team.Reports(in.Context(), store.ReportFilter{}, 0, 10))(in)
		if len(reports) != 2 {
			in.Errorf("got %d reports, want 2", len(reports))
		}
	})
}

func TestVersionsOfAReport(t *testing.T) {
	first := report("1", ours, storetest.Passed(ours, 5), storetest.Failed("sub."+ours, 2))
	second := report("1", ours, storetest.Passed(ours, 70))
	third := report("1", ours, storetest.Failed(ours, 900))
	eachInbox(t, func(in *inbox) {
		in.add(ours, "sub."+ours)
		in.wantReceived("stored", first)
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(5), "sub." + ours: {NonCompliant: 2}})
		in.wantReceived("replaced", second)
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(70), "sub." + ours: {}})
		in.wantReceived("duplicate duplicate", first, second)
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(70), "sub." + ours: {}})
		in.wantReceived("replaced duplicate duplicate", third, first, second)
		in.wantCounted(map[string]dmarcd.Summary{ours: {NonCompliant: 900}, "sub." + ours: {}})

		reports := musttest.Get(in.team.Reports(in.Context(), store.ReportFilter{}, 0, 10))(in)
		counting := 0
		for _, r := range reports {
			if r.State == dmarcd.ReportCounted {
				counting++
			}
		}
		if len(reports) != 3 || counting != 1 || reports[0].State != dmarcd.ReportCounted {
			in.Errorf("got %d versions of which %d count, want 3 and 1, the last first", len(reports), counting)
		}
	})
}

func TestVersionsInOneBatch(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		in.wantReceived("stored replaced duplicate replaced",
			report("1", ours, storetest.Passed(ours, 1)), report("1", ours, storetest.Passed(ours, 2)),
			report("1", ours, storetest.Passed(ours, 1)), report("1", ours, storetest.Passed(ours, 4)))
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(4)})
	})
}

func TestForgedVersions(t *testing.T) {
	old, other := report("1", ours, storetest.Passed(ours, 1)), report("1", ours, storetest.Passed(ours, 100))
	rows := []struct {
		name       string
		before     dmarcd.Genuine
		now        dmarcd.Genuine
		want       dmarcd.ReceiptStatus
		wantPassed int64
	}{
		{"forged against genuine", dmarcd.GenuineYes, dmarcd.GenuineNo, dmarcd.Held, 1},
		{"unknown against genuine", dmarcd.GenuineYes, dmarcd.GenuineUnknown, dmarcd.Held, 1},
		{"a bare file against genuine", dmarcd.GenuineYes, "", dmarcd.Held, 1},
		{"genuine against genuine", dmarcd.GenuineYes, dmarcd.GenuineYes, dmarcd.Replaced, 100},
		{"forged against unknown", dmarcd.GenuineUnknown, dmarcd.GenuineNo, dmarcd.Replaced, 100},
		{"forged against forged", dmarcd.GenuineNo, dmarcd.GenuineNo, dmarcd.Replaced, 100},
		{"genuine against forged", dmarcd.GenuineNo, dmarcd.GenuineYes, dmarcd.Replaced, 100},
	}
	eachInbox(t, func(in *inbox) {
		for _, row := range rows {
			in.row(row.name, func(in *inbox) {
				in.add(ours)
				in.deliver(genuinely(row.before, old))
				for range 2 { // the second one is a duplicate
					receipt := in.deliver(genuinely(row.now, other))[0]
					if receipt.Status != row.want && receipt.Status != dmarcd.Duplicate {
						in.Errorf("got %s, want %s", receipt.Status, row.want)
					}
				}
				in.wantCounted(map[string]dmarcd.Summary{ours: passed(row.wantPassed)})
				held := musttest.Get(in.team.Reports(in.Context(), store.ReportFilter{State: dmarcd.ReportHeld}, 0, 10))(in)
				if (len(held) == 1) != (row.want == dmarcd.Held) {
					in.Fatalf("got %d reports held", len(held))
				}
				for _, r := range held {
					if row.now != "" && r.Authentication.Genuine != row.now || r.HeldReason == "" {
						in.Errorf("held as %+v", r)
					}
				}
				events := musttest.Get(in.team.Events(in.Context(), store.EventFilter{Domain: ours, Kinds: []dmarcd.EventKind{dmarcd.HeldReport}}, store.Cursor{}, 10))(in)
				if len(events) != len(held) {
					in.Errorf("got the events %+v, want one for each held report", events)
				}
			})
		}
	})
}

// TestHeldReportsOfADelivery checks that a delivery with many held reports makes one event for
// each domain.
func TestHeldReportsOfADelivery(t *testing.T) {
	const other = "example.net"
	eachInbox(t, func(in *inbox) {
		in.add(ours, other)
		var reports []dmarcd.NewReport
		for i := range 1000 {
			reports = append(reports, report(fmt.Sprint(i), ours, storetest.Passed(ours, most)))
		}
		reports = append(reports, report("good", other, storetest.Passed(other, 1)), report("odd", other, storetest.Passed(other, most)),
			report("foreign", "example.org", storetest.Passed("example.org", most)))
		receipts := in.deliver(storetest.Delivery(reports...))
		events := musttest.Get(in.team.Events(in.Context(), store.EventFilter{Kinds: []dmarcd.EventKind{dmarcd.HeldReport}}, store.Cursor{}, 10))(in)
		if len(events) != 2 {
			in.Fatalf("got %d events, want one for each domain", len(events))
		}
		for i, want := range []struct {
			domain  string
			receipt dmarcd.Receipt
			reports int64
			summary string
		}{
			{other, receipts[1001], 0, "A report by receiver.example about example.net is not counted until an editor releases it. "},
			{ours, receipts[0], 1000, "1,000 reports about " + ours + " are not counted until an editor releases them. The first one is by receiver.example. "},
		} {
			e := events[i]
			if e.Domain != want.domain || e.Report != want.receipt.ID || e.Organization != "receiver.example" || e.Reason != want.receipt.Reason ||
				e.Messages != want.reports || phrase.Event(e) != want.summary+want.receipt.Reason {
				in.Errorf("got %+v: %s, want %+v", e, phrase.Event(e), want)
			}
		}
	})
}

// TestForgedThenGenuine checks that identical content is a duplicate, regardless of its
// authentication.
func TestForgedThenGenuine(t *testing.T) {
	old, other := report("1", ours, storetest.Passed(ours, 1)), report("1", ours, storetest.Passed(ours, 100))
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		in.deliver(genuinely(dmarcd.GenuineYes, old))
		got := statuses(in.deliver(genuinely(dmarcd.GenuineNo, other), genuinely(dmarcd.GenuineYes, other), genuinely(dmarcd.GenuineNo, old)))
		if want := "held duplicate duplicate"; got != want {
			in.Errorf("got %q, want %q", got, want)
		}
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(1)})
	})
}

func TestReplacedVersionOfDeletedAndLaterDomains(t *testing.T) {
	first := report("1", "policy.example", storetest.Passed("gone.example", 1), storetest.Passed("kept.example", 20),
		storetest.Passed("later.example", 300))
	second := report("1", "policy.example", storetest.Failed("kept.example", 4000), storetest.Failed("gone.example", 50000))
	eachInbox(t, func(in *inbox) {
		in.add("gone.example", "kept.example")
		in.wantReceived("stored", first)
		in.add("later.example")
		in.wantCounted(map[string]dmarcd.Summary{"gone.example": passed(1), "kept.example": passed(20), "later.example": passed(300)})
		in.delete("gone.example")
		in.wantCounted(map[string]dmarcd.Summary{"kept.example": passed(20), "later.example": passed(300)})
		in.wantReceived("replaced", second)
		want := map[string]dmarcd.Summary{"kept.example": {NonCompliant: 4000}, "later.example": {}}
		in.wantCounted(want)
		in.purge()
		in.wantCounted(want)
		in.add("gone.example")
		want["gone.example"] = dmarcd.Summary{NonCompliant: 50000} // the second one arrived while it was unclaimed
		in.wantCounted(want)
	})
}

func TestDeletedDomainStartsAtZero(t *testing.T) {
	whole := report("1", ours, storetest.Passed(ours, 5))
	mixed := report("2", ours, storetest.Passed(ours, 70), storetest.Passed("other.example", 900))
	eachInbox(t, func(in *inbox) {
		for _, when := range []string{"before the purge", "after the purge"} {
			in.row(when, func(in *inbox) {
				in.add(ours, "other.example")
				in.wantReceived("stored stored", whole, mixed)
				in.delete(ours)
				if when == "after the purge" {
					in.purge()
				}
				in.add(ours)
				in.wantCounted(map[string]dmarcd.Summary{ours: {}, "other.example": passed(900)})
				// The remaining share of the second one makes it a duplicate.
				in.wantReceived("stored duplicate", whole, mixed)
				want := map[string]dmarcd.Summary{ours: passed(5), "other.example": passed(900)}
				in.wantCounted(want)
				in.purge()
				in.wantCounted(want)
				in.wantReceived("duplicate duplicate", whole, mixed)
			})
		}
	})
}

func TestReceiptsReportEverything(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		claimed := report("1", ours, storetest.Passed(ours, 5), storetest.Failed("sub."+ours, 2))
		claimed.Member = "a.zip/1.xml"
		strange := report("2", "strange.example", storetest.Passed("strange.example", 1))
		delivery := storetest.Delivery(claimed, strange, claimed)
		delivery.Rejections = []dmarcd.Rejection{{Kind: dmarcd.KindTLS, Member: "a.zip/x.json", Reason: "It is cut off."}, {Reason: "It is nothing."}}
		got := in.deliver(delivery)
		quirks := []dmarcd.Quirk{{Name: "version_missing", Count: 1}}
		want := []dmarcd.Receipt{
			{
				ID: got[0].ID, Kind: dmarcd.KindAggregate, Member: "a.zip/1.xml", Status: dmarcd.Stored, ExternalID: "1",
				Organization: "receiver.example", Domain: ours, Records: 2, Messages: 7, Quirks: quirks,
			},
			{
				ID: got[1].ID, Kind: dmarcd.KindAggregate, Status: dmarcd.Unclaimed, ExternalID: "2",
				Organization: "receiver.example", Domain: "strange.example", Records: 1, Messages: 1, Quirks: quirks,
			},
			{
				ID: got[0].ID, Kind: dmarcd.KindAggregate, Member: "a.zip/1.xml", Status: dmarcd.Duplicate, ExternalID: "1",
				Organization: "receiver.example", Domain: ours, Records: 2, Messages: 7, Quirks: quirks,
			},
			{Kind: dmarcd.KindTLS, Member: "a.zip/x.json", Status: dmarcd.StatusRejected, Reason: "It is cut off."},
			{Status: dmarcd.StatusRejected, Reason: "It is nothing."},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			in.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestReceiveIsAllOrNothing(t *testing.T) {
	broken := report("2", ours, storetest.Passed(ours, 5))
	broken.EachRecord = func(yield func(aggregate.Record, error) bool) {
		_ = yield(storetest.Passed(ours, 5), nil) && yield(aggregate.Record{}, errUnreadable)
	}
	unexpected := report("3", ours, storetest.Passed(ours, 5))
	unexpected.EachRecord = iter.Seq2[aggregate.Record, error](func(yield func(aggregate.Record, error) bool) {
		yield(storetest.Passed("unheard.example", 5), nil)
	})
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		before := in.db.Dump(in)
		for _, second := range []dmarcd.NewReport{broken, unexpected} {
			_, err := in.team.Receive(in.Context(), []*dmarcd.Delivery{
				storetest.Delivery(report("1", ours, storetest.Passed(ours, 5))), storetest.Delivery(second),
			})
			if err == nil {
				in.Errorf("report %s was kept without its records", second.ExternalID)
			}
			if second.ExternalID == "2" && !errors.Is(err, errUnreadable) {
				in.Errorf("got %v, want the error of the records", err)
			}
		}
		if diff := cmp.Diff(before, in.db.Dump(in)); diff != "" {
			in.Errorf("something was kept (-before +after):\n%s", diff)
		}
	})
}

var errUnreadable = errors.New("the file is gone")

func TestReceiveNothing(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.deliver()
		in.deliver(storetest.Delivery())
		if n := in.rows("originals"); n != 0 {
			in.Errorf("%d originals of nothing were kept", n)
		}
		if _, err := in.store.Team(4711).Receive(in.Context(), nil); !errors.Is(err, dmarcd.ErrNotFound) {
			in.Errorf("a team that is not there: got %v, want ErrNotFound", err)
		}
	})
}

func TestReportWithoutRecords(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		in.wantReceived("stored unclaimed", report("1", ours), report("2", "strange.example"))
		in.wantCounted(map[string]dmarcd.Summary{ours: {}})
	})
}

func TestOtherKindsCountNothing(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		tls := report("1", ours)
		tls.Kind, tls.EachRecord, tls.Messages, tls.Compliant = dmarcd.KindTLS, nil, 1000, 900
		tls.Shares = []dmarcd.Share{{From: ours, Records: 1}, {From: "other.example", Records: 2}}
		failure := report("2", ours)
		failure.Kind, failure.EachRecord, failure.Messages = dmarcd.KindFailure, nil, 3
		failure.Key = failure.Content
		failure.Shares = []dmarcd.Share{{From: "sub." + ours, Records: 1}}
		in.wantReceived("stored stored duplicate", tls, failure, failure)
		in.wantCounted(map[string]dmarcd.Summary{ours: {}})
	})
}

func TestTextThatCannotBeStored(t *testing.T) {
	rows := []struct{ name, bad string }{
		{"NUL", "a\x00b"},
		{"not UTF-8", "a\xff\xfeb\xc3"},
		{"half a character", "\xe2\x82"},
		{"ends of lines", "a\nb\r\nc"},
		{"long", strings.Repeat("ä", 250)},
		{"dots", strings.Repeat(".", 300)},
		{"markup and quotes", `'"<b>%s\`},
	}
	eachInbox(t, func(in *inbox) {
		for _, row := range rows {
			in.row(row.name, func(in *inbox) { receiveOdd(in, row.bad) })
		}
	})
}

// receiveOdd stores the text in every field that an outsider controls.
func receiveOdd(in *inbox, bad string) {
	in.add(ours)
	record := storetest.Passed(bad, 3)
	record.Source, record.EnvelopeFrom, record.EnvelopeTo = bad, bad, bad
	record.Disposition, record.SPF = aggregate.Policy(bad), aggregate.Result(bad)
	record.Reasons = []aggregate.Reason{{Type: bad, Comment: bad}}
	record.DKIMResults = []aggregate.DKIMResult{
		{Domain: bad, Selector: bad, Result: aggregate.ResultPass, HumanResult: bad},
		{Domain: bad + "." + ours, Selector: bad, Result: aggregate.ResultPass, HumanResult: bad},
	}
	record.SPFResults = []aggregate.SPFResult{{Domain: bad, Scope: bad, Result: aggregate.Result(bad), HumanResult: bad}}
	odd := report(bad, bad+"."+ours, record, storetest.Passed(ours, 4))
	odd.Organization, odd.Damage, odd.Member = bad, bad, bad
	odd.Document = shape.EncodeDetail(dmarcd.Detail{Aggregate: &dmarcd.AggregateDetail{Report: aggregate.Report{Version: bad}}})
	delivery := storetest.Delivery(odd)
	delivery.Name = bad
	delivery.Authentication = dmarcd.Authentication{Genuine: dmarcd.GenuineNo, From: bad, DKIM: bad, SPF: bad, DMARC: bad, Reason: bad}
	delivery.Rejections = []dmarcd.Rejection{{Member: bad, Reason: bad}}

	if got := statuses(in.deliver(delivery)); got != "stored rejected" {
		in.Errorf("got %q, want it stored and rejected", got)
	}
	if got := statuses(in.deliver(delivery)); got != "duplicate rejected" {
		in.Errorf("again: got %q, want it duplicate and rejected", got)
	}
	in.wantCounted(map[string]dmarcd.Summary{ours: passed(7)})
	ctx := in.Context()
	for _, filter := range []store.ReportFilter{
		{Organization: bad}, {ExternalID: bad}, {Quirk: bad}, {Domain: bad}, {Kind: dmarcd.ReportKind(bad)}, {Genuine: dmarcd.Genuine(bad)},
	} {
		musttest.Get(in.team.Reports(ctx, filter, 0, 10))(in)
	}
	reports := musttest.Get(in.team.Reports(ctx, store.ReportFilter{ExternalID: bad}, 0, 10))(in)
	if len(reports) != 1 {
		in.Fatalf("got %d reports by the id, want 1", len(reports))
	}
	musttest.Get(in.team.Report(ctx, reports[0].ID))(in)
	records, _, err := in.team.Records(ctx, reports[0].ID, store.RecordCursor{}, 10)
	in.must(err)
	rejected := musttest.Get(in.team.Rejected(ctx, 0, 10))(in)
	if len(records) != 2 || len(rejected) != 1 {
		in.Errorf("got %d records and %d rejected, want 2 and 1", len(records), len(rejected))
	}
}

// TestUnclaimedReports receives reports about no domain of the team, about one, and about one among
// others.
func TestUnclaimedReports(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		ids := map[string]dmarcd.ReportID{
			"foreign": in.receive(report("1", "later.example", storetest.Passed("later.example", 1)))[0].ID,
			"own":     in.receive(report("2", ours, storetest.Passed(ours, 1)))[0].ID,
			"partly":  in.receive(report("3", "later.example", storetest.Passed("later.example", 1), storetest.Passed(ours, 1)))[0].ID,
		}
		want := func(when string, unclaimed ...string) {
			in.Helper()
			for _, r := range musttest.Get(in.team.Reports(in.Context(), store.ReportFilter{}, 0, 10))(in) {
				one := musttest.Get(in.team.Report(in.Context(), r.ID))(in)
				expected := slices.ContainsFunc(unclaimed, func(name string) bool { return ids[name] == r.ID })
				if r.Unclaimed != expected || one.Unclaimed != expected {
					in.Errorf("%s, report %s: got it unclaimed: %t in the list, %t alone; want %t", when, r.ExternalID, r.Unclaimed, one.Unclaimed, expected)
				}
			}
		}
		want("at first", "foreign")
		in.add("later.example")
		want("with the domain")
	})
}

// TestDeliveryReplacesFewLargeReports replaces large reports by small ones in one delivery: the
// first one counts, the others are held, because one transaction cannot subtract the counts of all.
func TestDeliveryReplacesFewLargeReports(t *testing.T) {
	if testing.Short() {
		return
	}
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		const shares = 6_000
		var small []dmarcd.NewReport
		for i := range 3 {
			in.wantReceived("stored", wide(fmt.Sprint(i), shares, 1))
			small = append(small, report(fmt.Sprint(i), ours, storetest.Passed(ours, 5)))
		}
		receipts := in.deliver(storetest.Delivery(small...))
		if got := statuses(receipts); got != "replaced held held" {
			in.Errorf("got %q, want one replaced and the others held", got)
		}
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(5 + 2*shares)})
		for i, want := range []int64{10 + shares, 15} {
			musttest.Get(in.team.SetReportCounted(in.Context(), receipts[i+1].ID, true))(in)
			in.wantCounted(map[string]dmarcd.Summary{ours: passed(want)})
		}
		// Small ones are replaced together.
		for i := range small {
			small[i] = report(fmt.Sprint(i), ours, storetest.Passed(ours, 7))
		}
		if got := statuses(in.deliver(storetest.Delivery(small...))); got != "replaced replaced replaced" {
			in.Errorf("got %q, want all replaced", got)
		}
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(21)})
	})
}
