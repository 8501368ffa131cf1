package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

func TestRetention(t *testing.T) {
	whole := report("1", ours, storetest.Passed(ours, 5), storetest.Failed("strange.example", 2))
	tls := report("2", ours)
	tls.Kind, tls.EachRecord, tls.Shares = dmarcd.KindTLS, nil, []dmarcd.Share{{From: ours, Records: 1}}
	retained := store.Retention{Originals: ofDays(10), Rejected: ofDays(20), Records: ofDays(30), Counters: ofDays(40)}
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		delivery := storetest.Delivery(whole)
		rejected := storetest.Delivery()
		rejected.Original, rejected.Rejections = storetest.Original([]byte("nonsense")), []dmarcd.Rejection{{Reason: "A test."}}
		id := in.deliver(delivery, storetest.Delivery(tls), rejected)[0].ID
		counted := map[string]dmarcd.Summary{ours: {Compliant: 5, NonCompliant: 2}}
		type stored struct{ Originals, Rejected, Records, Reports, Shares, Days int }
		for _, step := range []struct {
			name string
			wait time.Duration
			want stored
		}{
			{"at once", 0, stored{3, 1, 2, 2, 3, 2}},
			{"to the second", ofDays(10), stored{3, 1, 2, 2, 3, 2}},
			{"originals", time.Second, stored{1, 1, 2, 2, 3, 2}},
			{"what was rejected", ofDays(10), stored{0, 0, 2, 2, 3, 2}},
			{"records", ofDays(11), stored{0, 0, 0, 2, 3, 2}},
			{"counters", ofDays(10), stored{}},
		} {
			in.clock.advance(step.wait)
			in.expire(retained)
			in.purge()
			got := stored{
				in.rows("originals"), in.rows("rejected"), in.rows("records"), in.rows("reports"), in.rows("shares"),
				in.rows("domain_days") + in.rows("team_days"),
			}
			if diff := cmp.Diff(step.want, got); diff != "" {
				in.Errorf("%s (-want +got):\n%s", step.name, diff)
			}
			if step.want.Reports == 0 {
				break
			}
			in.wantCounted(counted)
			in.wantReceived("duplicate", whole)
			read := musttest.Get(in.team.Report(in.Context(), id))(in)
			if read.Detail.Aggregate == nil || read.Messages != 7 {
				in.Errorf("%s: the report became %+v", step.name, read)
			}
			if _, err := in.team.ReportOriginal(in.Context(), id); (err == nil) != (step.want.Originals == 3) || err != nil && !errors.Is(err, dmarcd.ErrNotFound) {
				in.Errorf("%s: the original: %v", step.name, err)
			}
		}
		in.wantCounted(map[string]dmarcd.Summary{ours: {}})
		in.wantReceived("stored", whole) // no longer a duplicate
	})
}

func TestDocumentsOfOtherKindsGoWithTheRecords(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		failure := report("1", ours)
		failure.Document = `{"v":1,"incidents":1}`
		failure.Kind, failure.EachRecord, failure.Shares = dmarcd.KindFailure, nil, []dmarcd.Share{{From: ours, Records: 1}}
		id := in.receive(failure)[0].ID
		got := musttest.Get(in.team.Report(in.Context(), id))(in)
		if got.Detail.Failure == nil || got.Detail.Failure.Incidents != 1 {
			in.Errorf("got the detail %+v, want that of a failure report", got.Detail)
		}
		in.clock.advance(ofDays(3))
		in.expire(store.Retention{Records: ofDays(1)})
		got = musttest.Get(in.team.Report(in.Context(), id))(in)
		if got.Detail != (dmarcd.Detail{}) || got.Domain != ours {
			in.Errorf("got the detail %+v of a report about %q, want none about %q", got.Detail, got.Domain, ours)
		}
	})
}

func TestRetentionOfTeams(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		teams := map[string]*store.Team{}
		for _, row := range []struct {
			name     string
			retained store.Retention
		}{
			{"as configured", store.Retention{Originals: store.AsConfigured, Records: store.AsConfigured, Counters: store.AsConfigured}},
			{"for ever", store.Retention{}},
			{"shorter", store.Retention{Originals: ofDays(1), Records: ofDays(1), Counters: store.AsConfigured}},
			{"counters shorter than records", store.Retention{Originals: store.AsConfigured, Records: store.AsConfigured, Counters: ofDays(1)}},
		} {
			team := newTeam(in.T, in.store, row.name)
			in.must(team.SetRetention(in.Context(), row.retained))
			got := musttest.Get(team.Retention(in.Context()))(in)
			row.retained.Rejected, row.retained.Failure = store.AsConfigured, store.AsConfigured
			if got != row.retained {
				in.Errorf("%s: got %+v, want %+v", row.name, got, row.retained)
			}
			addDomain(in, team, ours)
			storetest.Count(in, team, ours, dmarcd.DayCount{Day: today, Summary: passed(5)})
			teams[row.name] = team
		}
		in.clock.advance(ofDays(5))
		in.expire(store.Retention{Originals: ofDays(10), Records: ofDays(10), Counters: ofDays(10)})
		for name, want := range map[string]struct {
			records int
			counted int64
		}{
			"as configured": {2, 5}, "for ever": {2, 5}, "shorter": {0, 5}, "counters shorter than records": {0, 0},
		} {
			sum := musttest.Get(teams[name].Summary(in.Context(), dmarcd.Days{}))(in)
			reports := musttest.Get(teams[name].Reports(in.Context(), store.ReportFilter{}, 0, 10))(in)
			records := 0
			for _, r := range reports {
				some, _, err := teams[name].Records(in.Context(), r.ID, store.RecordCursor{}, 10)
				in.must(err)
				records += len(some)
			}
			if records != want.records || sum.Total() != want.counted {
				in.Errorf("%s: got %d records and %d messages, want %d and %d", name, records, sum.Total(), want.records, want.counted)
			}
		}
	})
}

func TestNothingExpiresWithoutARetention(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		in.receive(storetest.Aggregate("1", ours, 1, storetest.Passed(ours, 5)))
		before := in.db.Dump(in)
		in.clock.advance(ofDays(100_000))
		in.expire(store.Retention{})
		if diff := cmp.Diff(before, in.db.Dump(in)); diff != "" {
			in.Errorf("(-before +after):\n%s", diff)
		}
	})
}

// TestExpiryIsInSmallSteps checks that the counters are consistent after each step.
func TestExpiryIsInSmallSteps(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		var big []aggregate.Record
		for range 1700 {
			big = append(big, storetest.Passed(ours, 1))
		}
		in.wantReceived("stored", report("big", ours, big...))
		var many []dmarcd.NewReport
		for i := range 130 {
			many = append(many, report(fmt.Sprint(i), ours, storetest.Passed(ours, 1)))
		}
		in.receive(many...)
		in.clock.advance(ofDays(10))
		if steps := in.expire(store.Retention{Records: ofDays(1)}); steps < 4 {
			in.Errorf("records went in %d steps, want small ones", steps)
		}
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(1830)})
		if steps := in.expire(store.Retention{Counters: ofDays(1)}); steps < 3 {
			in.Errorf("reports went in %d steps, want small ones", steps)
		}
		in.wantCounted(map[string]dmarcd.Summary{ours: {}})
	})
}

// TestExpiryReadsFewShares expires reports with many shares. A step marks only the days of the
// reports that it can empty, and reads one share of each.
func TestExpiryReadsFewShares(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		const reports, shares = 10, 300
		read := 0
		in.store = in.db.Open(in, store.Options{Now: in.clock.Now, Statement: func(query string) {
			if !strings.HasPrefix(query, "SELECT day FROM shares") {
				return
			}
			if read++; !strings.HasSuffix(query, " LIMIT 1") {
				in.Errorf("reads all shares of a report: %s", query)
			}
		}})
		in.team = in.store.Team(in.team.ID())
		in.add(ours)
		for i := range reports {
			in.wantReceived("stored", wide(fmt.Sprint(i), shares, 1))
		}
		in.clock.advance(ofDays(10))
		storetest.All(in, func(ctx context.Context) (bool, error) {
			return in.store.Expire(ctx, store.Retention{Records: ofDays(1)})
		})
		if read != reports {
			in.Errorf("looked for the days of reports %d times, want once for each of %d", read, reports)
		}
		if got := in.number(`SELECT COUNT(*) FROM team_days WHERE expired`); got != 1 || in.rows("records") != 0 {
			in.Errorf("got %d days with expired records, and %d records left, want 1 and none", got, in.rows("records"))
		}
	})
}

func TestPurgeOfReportsIsInSmallSteps(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours, "other.example")
		var big []aggregate.Record
		for range 1200 {
			big = append(big, storetest.Passed(ours, 1))
		}
		big = append(big, storetest.Passed("other.example", 1))
		in.wantReceived("stored", report("big", ours, big...))
		in.delete(ours)
		if steps := in.purge(); steps < 3 {
			in.Errorf("purged in %d steps, want small ones", steps)
		}
		if got := in.rows("records"); got != 1 {
			in.Errorf("%d records are left, want those of the other domain", got)
		}
		in.wantCounted(map[string]dmarcd.Summary{"other.example": passed(1)})
	})
}

func TestFailureReportsHaveTheirOwnRetention(t *testing.T) {
	retained := store.Retention{Failure: ofDays(14)}
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		failed := report("1", ours)
		failed.Kind, failed.EachRecord, failed.Shares = dmarcd.KindFailure, nil, []dmarcd.Share{{From: ours, Records: 1}}
		complaint := storetest.Delivery()
		complaint.Original = storetest.Original([]byte("a complaint"))
		complaint.Rejections = []dmarcd.Rejection{{Kind: dmarcd.KindFailure, Reason: "other feedback report"}}
		other := report("2", ours, storetest.Passed(ours, 5))
		in.deliver(storetest.Delivery(failed), complaint, storetest.Delivery(other))
		for _, step := range []struct {
			wait                         time.Duration
			reports, rejected, originals int
		}{
			{ofDays(14), 2, 1, 3},
			{time.Second, 1, 0, 1},
		} {
			in.clock.advance(step.wait)
			in.expire(retained)
			if got := [3]int{in.rows("reports"), in.rows("rejected"), in.rows("originals")}; got != [3]int{step.reports, step.rejected, step.originals} {
				in.Errorf("got %v reports, rejected and originals, want %d, %d and %d", got, step.reports, step.rejected, step.originals)
			}
		}
		in.wantCounted(map[string]dmarcd.Summary{ours: {Compliant: 5}})
	})
}
