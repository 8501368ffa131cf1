package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// decided is the audit entry of a decision.
func decided(action string) dmarcd.AuditEntry {
	return dmarcd.AuditEntry{Actor: "editor@example.com", Action: action}
}

// setCounted includes or excludes a report, and checks whether that changed anything.
func (in *inbox) setCounted(id dmarcd.ReportID, counted, want bool) {
	in.Helper()
	before := in.entries()
	changed := musttest.Get(in.team.SetReportCounted(in.Context(), id, counted, decided("report.include")))(in)
	if changed != want {
		in.Errorf("counted %t: got changed %t, want %t", counted, changed, want)
	}
	if entries := in.entries() - before; (entries == 1) != want || entries > 1 {
		in.Errorf("counted %t: got %d entries in the audit log", counted, entries)
	}
	in.sound()
}

func (in *inbox) entries() int {
	in.Helper()
	entries := musttest.Get(in.team.Audit(in.Context(), store.AuditFilter{}, store.Cursor{}, 1000))(in)
	return len(entries)
}

func (in *inbox) wantState(id dmarcd.ReportID, want dmarcd.ReportState) {
	in.Helper()
	report := musttest.Get(in.team.Report(in.Context(), id))(in)
	if report.State != want || (report.HeldReason != "") != (want == dmarcd.ReportHeld) {
		in.Errorf("got %s, %q; want %s", report.State, report.HeldReason, want)
	}
}

func TestExcludeAndInclude(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours, "sub."+ours)
		one := in.receive(report("1", ours, storetest.Passed(ours, 5000), storetest.Failed("sub."+ours, 2)))[0].ID
		in.receive(report("2", ours, storetest.Failed(ours, 300)))
		whole := map[string]dmarcd.Summary{ours: {Compliant: 5000, NonCompliant: 300}, "sub." + ours: {NonCompliant: 2}}
		rest := map[string]dmarcd.Summary{ours: {NonCompliant: 300}, "sub." + ours: {}}
		for range 2 {
			buildRollups(in, in.store)
			in.wantCounted(whole)
			wantMessages(in, 5302)
			in.setCounted(one, false, true)
			in.setCounted(one, false, false)
			in.wantState(one, dmarcd.ReportExcluded)
			in.wantCounted(rest)
			wantMessages(in, 300)
			buildRollups(in, in.store)
			wantMessages(in, 300)
			in.setCounted(one, true, true)
			in.setCounted(one, true, false)
			in.wantState(one, dmarcd.ReportCounted)
			in.wantCounted(whole)
			wantMessages(in, 5302)
		}
	})
}

// wantMessages checks the messages of all sources.
func wantMessages(in *inbox, want int64) {
	in.Helper()
	positions, got, err := sentPositions(in.Context(), in.team)
	in.must(err)
	records := musttest.Get(in.team.SentRecords(in.Context(), positions))(in)
	if got != want || len(records) != len(positions) {
		in.Errorf("sources: got %d messages and %d of %d records, want %d", got, len(records), len(positions), want)
	}
}

func TestExclusionSurvivesReplacement(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		first := in.receive(report("1", ours, storetest.Passed(ours, 1)))[0].ID
		in.setCounted(first, false, true)
		second := in.receive(report("1", ours, storetest.Passed(ours, 20)))[0]
		if second.Status != dmarcd.Replaced {
			in.Errorf("got %s, want replaced", second.Status)
		}
		in.wantState(first, dmarcd.ReportReplaced)
		in.wantState(second.ID, dmarcd.ReportExcluded)
		in.wantCounted(map[string]dmarcd.Summary{ours: {}})
		in.setCounted(first, false, false)
		in.setCounted(second.ID, true, true)
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(20)})
		// An editor may select the version.
		in.setCounted(first, true, true)
		in.wantState(second.ID, dmarcd.ReportReplaced)
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(1)})
	})
}

func TestReleaseOfAHeldReport(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		held := in.receive(report("1", ours, storetest.Passed(ours, dmarcd.MaxReleasedMessages)))[0].ID
		small := in.receive(report("1", ours, storetest.Passed(ours, 7)))[0].ID
		in.setCounted(held, false, false)
		in.wantState(held, dmarcd.ReportHeld)
		in.setCounted(held, true, true)
		in.wantState(held, dmarcd.ReportCounted)
		in.wantState(small, dmarcd.ReportReplaced)
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(dmarcd.MaxReleasedMessages)})
		in.wantReceived("stored", report("2", ours, storetest.Passed(ours, 3)))
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(dmarcd.MaxReleasedMessages + 3)})
		in.setCounted(held, false, true)
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(3)})

		for i, records := range [][]aggregate.Record{
			{storetest.Passed(ours, dmarcd.MaxReleasedMessages), storetest.Failed(ours, 1)}, {storetest.Passed(ours, most)},
		} {
			large := in.receive(report(fmt.Sprint("large ", i), ours, records...))[0].ID
			if _, err := in.team.SetReportCounted(in.Context(), large, true); !errors.Is(err, dmarcd.ErrCountTooLarge) {
				in.Errorf("got %v, want ErrCountTooLarge", err)
			}
			in.wantState(large, dmarcd.ReportHeld)
		}
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(3)})
	})
}

func TestExcludedReportOfALaterDomain(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		id := in.receive(report("1", ours, storetest.Passed(ours, 5)))[0].ID
		in.setCounted(id, false, true)
		in.add(ours)
		in.wantCounted(map[string]dmarcd.Summary{ours: {}})
		in.setCounted(id, true, true)
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(5)})
		in.delete(ours)
		if _, err := in.team.SetReportCounted(in.Context(), id, false, decided("report.exclude")); !errors.Is(err, dmarcd.ErrNotFound) {
			in.Errorf("a report of a deleted domain: got %v, want ErrNotFound", err)
		}
	})
}

func TestDeleteReport(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		var records []aggregate.Record
		for range 1200 { // more than one step of the purge
			records = append(records, storetest.Passed(ours, 2))
		}
		large := report("1", ours, records...)
		for _, when := range []string{"before the purge", "after the purge"} {
			id := in.receive(large)[0].ID
			in.wantReceived("stored", report("2", ours, storetest.Failed(ours, 3)))
			buildRollups(in, in.store)
			in.must(in.team.DeleteReport(in.Context(), id, decided("report.delete")))
			in.sound()
			in.wantCounted(map[string]dmarcd.Summary{ours: {NonCompliant: 3}})
			wantMessages(in, 3)
			wantGone(in, id)
			if when == "after the purge" {
				in.purge()
				for table, want := range map[string]int{"reports": 1, "shares": 1, "records": 1, "originals": 1} {
					if got := in.rows(table); got != want {
						in.Errorf("%s has %d rows, want %d", table, got, want)
					}
				}
			}
			// It is stored again.
			again := in.receive(large)[0]
			if again.Status != dmarcd.Stored || again.ID == id {
				in.Errorf("%s: got %s, want it stored anew", when, again.Status)
			}
			in.wantCounted(map[string]dmarcd.Summary{ours: {Compliant: 2400, NonCompliant: 3}})
			in.purge()
			in.wantCounted(map[string]dmarcd.Summary{ours: {Compliant: 2400, NonCompliant: 3}})
			musttest.Get(in.team.ReportOriginal(in.Context(), again.ID))(in)
			in.delete(ours)
			in.purge()
			in.add(ours)
		}
	})
}

// wantGone checks that nothing of a deleted report can be read.
func wantGone(in *inbox, id dmarcd.ReportID) {
	in.Helper()
	ctx := in.Context()
	_, reportErr := in.team.Report(ctx, id)
	_, originalErr := in.team.ReportOriginal(ctx, id)
	_, countedErr := in.team.SetReportCounted(ctx, id, true, decided("report.include"))
	for what, err := range map[string]error{
		"the report": reportErr, "its original": originalErr, "its inclusion": countedErr,
		"its deletion": in.team.DeleteReport(ctx, id, decided("report.delete")),
	} {
		if !errors.Is(err, dmarcd.ErrNotFound) {
			in.Errorf("%s: got %v, want ErrNotFound", what, err)
		}
	}
	records, _, err := in.team.Records(ctx, id, store.RecordCursor{}, 10)
	in.must(err)
	reports := musttest.Get(in.team.Reports(ctx, store.ReportFilter{}, 0, 100))(in)
	for _, r := range reports {
		if r.ID == id {
			in.Error("the report is listed")
		}
	}
	if len(records) > 0 {
		in.Errorf("got %d records", len(records))
	}
}

// TestOriginalGoesWithTheLast deletes two reports and a rejected item of one delivery.
func TestOriginalGoesWithTheLast(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		delivery := storetest.Delivery(report("1", ours, storetest.Passed(ours, 1)), report("2", ours, storetest.Passed(ours, 2)))
		delivery.Rejections = []dmarcd.Rejection{{Member: "note.txt", Reason: "A test."}}
		receipts := in.deliver(delivery)
		rejected := musttest.Get(in.team.Rejected(in.Context(), 0, 10))(in)
		for i, remove := range []func() error{
			func() error { return in.team.DeleteReport(in.Context(), receipts[0].ID, decided("report.delete")) },
			func() error { return in.team.DeleteRejected(in.Context(), rejected[0].ID, decided("rejected.delete")) },
			func() error { return in.team.DeleteReport(in.Context(), receipts[1].ID, decided("report.delete")) },
		} {
			in.must(remove())
			if got, want := in.rows("originals"), map[bool]int{true: 1, false: 0}[i < 2]; got != want {
				in.Errorf("after %d deletions there are %d originals, want %d", i+1, got, want)
			}
			if err := remove(); !errors.Is(err, dmarcd.ErrNotFound) {
				in.Errorf("deletion %d again: got %v, want ErrNotFound", i+1, err)
			}
		}
		if got := in.entries(); got != 3 {
			in.Errorf("got %d entries in the audit log, want 3", got)
		}
	})
}

func TestSetReportsCounted(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		var reports []dmarcd.NewReport
		for i := range 230 { // more than one step
			r := storetest.Aggregate(fmt.Sprint(i), ours, today-dmarcd.Day(i%2), storetest.Passed(ours, 1))
			r.Organization = "Receiver.example"
			reports = append(reports, r)
		}
		other := storetest.Aggregate("other", ours, today, storetest.Passed(ours, 1000))
		other.Organization = "other.example"
		in.receive(append(reports, other, report("held", ours, storetest.Passed(ours, most)))...)
		held := musttest.Get(in.team.Reports(in.Context(), store.ReportFilter{State: dmarcd.ReportHeld}, 0, 10))(in)
		from, yesterday := today, today-1
		for _, step := range []struct {
			filter  store.ReportFilter
			counted bool
			changed int
			left    int64
		}{
			{store.ReportFilter{Organization: "unknown.example"}, false, 0, 1230},
			{store.ReportFilter{Organization: "RECEIVER.EXAMPLE"}, false, 230, 1000},
			{store.ReportFilter{Organization: "receiver.example"}, false, 0, 1000},
			{store.ReportFilter{Organization: "receiver.example", Days: dmarcd.Days{To: &yesterday}}, true, 115, 1115},
			{store.ReportFilter{Days: dmarcd.Days{From: &from}}, true, 115, 1230},
			{store.ReportFilter{Days: dmarcd.Days{From: &from, To: &from}}, false, 116, 115},
			{store.ReportFilter{Days: dmarcd.Days{From: &from, To: &from}}, true, 116, 1230},
		} {
			before := in.entries()
			changed := musttest.Get(in.team.SetReportsCounted(in.Context(), step.filter, step.counted, decided("report.exclude")))(in)
			if got, want := in.entries()-before, min(changed, 1); got != want {
				in.Errorf("%+v: got %d entries in the audit log, want %d", step.filter, got, want)
			}
			if changed != step.changed {
				in.Errorf("%+v: changed %d, want %d", step.filter, changed, step.changed)
			}
			in.wantCounted(map[string]dmarcd.Summary{ours: passed(step.left)})
			in.wantState(held[0].ID, dmarcd.ReportHeld)
		}
	})
}

// TestSetReportsCountedOfWideReports counts the transactions: they are short whatever the size of
// the reports.
func TestSetReportsCountedOfWideReports(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		transactions := 0
		in.store = in.db.Open(in, store.Options{Now: in.clock.Now, Statement: func(query string) {
			if strings.HasPrefix(query, "INSERT INTO team_days") {
				transactions++
			}
		}})
		in.team = in.store.Team(in.team.ID())
		in.add(ours)
		for i := range 5 {
			in.receive(wide(fmt.Sprint(i), 2_600, 1))
		}
		for _, counted := range []bool{false, true} {
			transactions = 0
			if n := musttest.Get(in.team.SetReportsCounted(in.Context(), store.ReportFilter{}, counted))(in); n != 5 {
				in.Errorf("changed %d reports, want 5", n)
			}
			if transactions != 3 {
				in.Errorf("took %d transactions, want 3", transactions)
			}
			in.wantCounted(map[string]dmarcd.Summary{ours: passed(map[bool]int64{true: 5 * 2_600}[counted])})
		}
	})
}

// by is the delivery of a report by mail authenticated as a domain, "" for a file.
func by(domain string, report dmarcd.NewReport) *dmarcd.Delivery {
	delivery := storetest.Delivery(report)
	if domain != "" {
		delivery.SetAuthentication(dmarcd.Authentication{Genuine: dmarcd.GenuineYes, From: domain, Domain: domain})
	}
	return delivery
}

// TestWhoReported checks that the authenticated domain decides which version counts, in
// any order.
func TestWhoReported(t *testing.T) {
	type sent func() *dmarcd.Delivery // one per store: receiving consumes it
	genuine := func(domain string) sent {
		return func() *dmarcd.Delivery {
			r := report("1", ours, storetest.Passed(ours, 5))
			r.Organization, r.Contact = "google.test", "noreply@google.test"
			return by(domain, r)
		}
	}
	forged := func(domain string) sent {
		return func() *dmarcd.Delivery {
			r := report("1", ours, storetest.Failed(ours, 1000))
			r.Organization, r.Contact = "google.test", "reports@evil.test"
			return by(domain, r)
		}
	}
	for _, row := range []struct {
		name          string
		first, second sent
		want          string
		counted       dmarcd.Summary
	}{
		{"evil after google", genuine("google.test"), forged("evil.test"), "stored held", passed(5)},
		{"google after evil", forged("evil.test"), genuine("mail.google.test"), "stored replaced", passed(5)},
		{"google again", genuine("google.test"), forged("mail.google.test"), "stored replaced", dmarcd.Summary{NonCompliant: 1000}},
		{"evil after a bare file", genuine(""), forged("evil.test"), "stored replaced", dmarcd.Summary{NonCompliant: 1000}},
		{"a bare file after google", genuine("google.test"), forged(""), "stored held", passed(5)},
		{"a bare file after evil", forged("evil.test"), genuine(""), "stored held", dmarcd.Summary{NonCompliant: 1000}},
		{"two bare files", forged(""), genuine(""), "stored replaced", passed(5)},
		{"two that match nothing", genuine("evil.test"), forged("other.test"), "stored held", passed(5)},
		{"the same content by another", genuine("google.test"), genuine("evil.test"), "stored duplicate", passed(5)},
		{"the same content as a file", genuine("google.test"), genuine(""), "stored duplicate", passed(5)},
	} {
		t.Run(row.name, func(t *testing.T) {
			eachInbox(t, func(in *inbox) {
				in.add(ours)
				got := statuses(append(in.deliver(row.first()), in.deliver(row.second())...))
				if got != row.want {
					in.Errorf("got %q, want %q", got, row.want)
				}
				in.wantCounted(map[string]dmarcd.Summary{ours: row.counted})
				if got == "stored held" {
					events := musttest.Get(in.team.Events(in.Context(), store.EventFilter{Kinds: []dmarcd.EventKind{dmarcd.HeldReport}}, store.Cursor{}, 10))(in)
					if len(events) != 1 || events[0].Domain != ours || events[0].Report == 0 || events[0].Organization == "" || events[0].Reason == "" {
						in.Errorf("got the events %+v, want one", events)
					}
				}
			})
		})
	}
}

// TestUnverifiedShare checks that totals contain the messages of unverified reports.
func TestUnverifiedShare(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		wantUnverified := func(want int64) {
			in.Helper()
			in.sound()
			for name, read := range map[string]func() ([]store.DailyCounts, error){
				"team":   func() ([]store.DailyCounts, error) { return in.team.Daily(in.Context(), dmarcd.Days{}, 10) },
				"domain": func() ([]store.DailyCounts, error) { return in.team.DomainDaily(in.Context(), ours, dmarcd.Days{}, 10) },
				"domains": func() ([]store.DailyCounts, error) {
					return in.team.DailyByDomain(in.Context(), dmarcd.Days{}, store.DailyCursor{}, 10)
				},
			} {
				days := musttest.Get(read())(in)
				var got int64
				for _, day := range days {
					got += day.Unverified
				}
				if got != want {
					in.Errorf("%s: got %d unverified messages, want %d", name, got, want)
				}
			}
		}
		in.deliver(by("receiver.example", report("1", ours, storetest.Passed(ours, 5))))
		wantUnverified(0)
		file := in.deliver(by("", report("2", ours, storetest.Passed(ours, 70), storetest.Failed("sub."+ours, 3))))[0].ID
		wantUnverified(73)
		in.setCounted(file, false, true)
		wantUnverified(0)
		in.setCounted(file, true, true)
		wantUnverified(73)
		in.deliver(by("evil.test", report("2", ours, storetest.Passed(ours, 1))))
		wantUnverified(0)
	})
}
