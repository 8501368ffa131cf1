package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

const (
	// most is the largest count of a record, full the value at which a sum saturates.
	most = 1<<53 - 1
	full = 1<<52 - 1
)

// released is a report that an editor released: it counts regardless of its plausibility.
func released(report dmarcd.NewReport) dmarcd.NewReport {
	report.HeldReason = ""
	return report
}

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

// TestCountersSaturate checks that a saturated counter never causes a later report to be
// rejected.
func TestCountersSaturate(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours, "other.example")
		in.wantReceived("stored stored", released(report("1", ours, storetest.Passed(ours, most))), released(report("2", ours, storetest.Passed(ours, full-10))))
		in.wantReceived("stored stored stored", report("3", ours, storetest.Passed(ours, 4), storetest.Failed("sub."+ours, 4)),
			report("4", ours, storetest.Passed(ours, 0)), report("5", ours, storetest.Passed("other.example", 3)))
		wantFull(in, map[string]dmarcd.Summary{ours: {Compliant: full, NonCompliant: 4}, "other.example": passed(3)}, dmarcd.Summary{Compliant: full, NonCompliant: 4})

		// When the cause is replaced, the counters are exact again.
		in.wantReceived("replaced", report("1", ours, storetest.Passed(ours, 1)))
		wantFull(in, map[string]dmarcd.Summary{ours: {Compliant: full - 5, NonCompliant: 4}, "other.example": passed(3)}, dmarcd.Summary{Compliant: full - 2, NonCompliant: 4})
		in.wantReceived("replaced", report("2", ours, storetest.Passed(ours, 2)))
		in.wantCounted(map[string]dmarcd.Summary{ours: {Compliant: 7, NonCompliant: 4}, "other.example": passed(3)})
	})
}

// wantFull is wantCounted with a saturated sum of the team.
func wantFull(in *inbox, want map[string]dmarcd.Summary, team dmarcd.Summary) {
	in.Helper()
	in.sound()
	from := dmarcd.Day(-1 << 31)
	for name, want := range want {
		for _, days := range []dmarcd.Days{{}, {From: &from}} {
			got := musttest.Get(in.team.DomainSummary(in.Context(), name, days))(in)
			if got != want {
				in.Errorf("%s: got %+v, want %+v", name, got, want)
			}
		}
	}
	got := musttest.Get(in.team.Summary(in.Context(), dmarcd.Days{}))(in)
	if got != team {
		in.Errorf("the team: got %+v, want %+v", got, team)
	}
}

// TestRecordsThatOverflow sums records beyond 64 bits.
func TestRecordsThatOverflow(t *testing.T) {
	if testing.Short() {
		return
	}
	eachInbox(t, func(in *inbox) {
		var records []aggregate.Record
		for i := range 2100 {
			records = append(records, storetest.Passed(fmt.Sprintf("d%d.%s", i, ours), most), storetest.Passed(ours, most))
		}
		in.wantReceived("unclaimed", released(report("1", ours, records...)))
		in.add(ours)
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(full)})
		in.wantReceived("replaced replaced", released(report("1", ours, records[1:]...)), report("1", ours, storetest.Passed(ours, 9)))
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(9)})
	})
}

// TestTeamOfFullDomains sums days and domains beyond 64 bits.
func TestTeamOfFullDomains(t *testing.T) {
	if testing.Short() {
		return
	}
	eachInbox(t, func(in *inbox) {
		const domains = 2100
		var names []string
		var reports []dmarcd.NewReport
		var day []aggregate.Record
		for i := range domains {
			name := fmt.Sprintf("d%d.example", i)
			names = append(names, name)
			reports = append(reports, released(storetest.Aggregate(fmt.Sprint(i), name, today-dmarcd.Day(i), storetest.Passed(name, most))))
			day = append(day, storetest.Failed(name, most))
		}
		musttest.Get(in.team.AddDomains(in.Context(), names, time.Time{}))(in)
		in.receive(append(reports, released(storetest.Aggregate("day", names[0], today, day...)))...)
		in.sound()
		sum := musttest.Get(in.team.Summary(in.Context(), dmarcd.Days{}))(in)
		if want := (dmarcd.Summary{Compliant: full, NonCompliant: full}); sum != want {
			in.Errorf("got %+v, want %+v", sum, want)
		}
		for _, sort := range []string{"-messages", "passing"} {
			musttest.Get(in.team.DomainRows(in.Context(), store.OverviewFilter{Sort: sort, Limit: 5}))(in)
		}
	})
}

// TestDeletedDomainOfAFullDay checks that a saturated day is recomputed after a deletion.
func TestDeletedDomainOfAFullDay(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours, "full.example", "other.example")
		in.wantReceived("stored stored stored", released(report("1", "full.example", storetest.Passed("full.example", most))),
			released(report("2", "other.example", storetest.Passed("other.example", full-20))), report("3", ours, storetest.Passed(ours, 30)))
		in.delete("full.example")
		wantFull(in, map[string]dmarcd.Summary{ours: passed(30)}, passed(full))
		in.delete("other.example")
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(30)})
	})
}

// TestFullDayIsNotAddedUp checks that a transaction that excludes a report of a full day, or deletes
// a domain, reads the shares of no other report: there may be millions.
func TestFullDayIsNotAddedUp(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		var sums int
		in.store = in.db.Open(in, store.Options{Now: in.clock.Now, Statement: func(query string) {
			if strings.Contains(query, "shares.day = $3") {
				sums++
			}
		}})
		in.team = in.store.Team(in.team.ID())
		in.add(ours, "other.example")
		in.receive(released(report("1", ours, storetest.Passed(ours, most), storetest.Failed("other.example", most))))
		large := in.receive(released(report("2", ours, storetest.Passed(ours, most))))[0].ID
		small := in.receive(report("3", ours, storetest.Passed(ours, 3)))[0].ID
		for _, id := range []dmarcd.ReportID{large, small} {
			for _, counted := range []bool{false, true} {
				musttest.Get(in.team.SetReportCounted(in.Context(), id, counted))(in)
			}
		}
		in.delete("other.example")
		if sums > 0 {
			in.Errorf("added up the shares of a day %d times", sums)
		}
		wantFull(in, map[string]dmarcd.Summary{ours: passed(full)}, passed(full))
	})
}

// TestFullDayOfAnOlderProgram checks that a day gets its exact counts if a program filled it that
// did not keep them.
func TestFullDayOfAnOlderProgram(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours, "other.example")
		large := in.receive(released(report("1", ours, storetest.Passed(ours, most), storetest.Failed("other.example", most))))[0].ID
		in.receive(report("2", ours, storetest.Passed(ours, 2)))
		forget := func() {
			in.damage(`UPDATE domain_days SET exact = NULL`)
			in.damage(`UPDATE team_days SET exact = NULL`)
		}
		forget()
		in.receive(report("3", ours, storetest.Passed(ours, 3)))
		in.sound()
		in.setCounted(large, false, true)
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(5), "other.example": {}})
		in.setCounted(large, true, true)
		forget()
		in.delete("other.example")
		in.sound()
		in.setCounted(large, false, true)
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(5)})
	})
}

func TestIntegrityFindsDamageOfAFullDay(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		in.receive(released(report("1", ours, storetest.Passed(ours, most))))
		for _, table := range []string{"domain_days", "team_days"} {
			in.sound()
			in.damage(`UPDATE ` + table + ` SET exact = exact || '1'`)
			if problem := musttest.Get(in.store.Integrity(in.Context()))(in); !strings.HasPrefix(problem, "the exact counts of a full day") {
				in.Errorf("%s: got %q", table, problem)
			}
			in.damage(`UPDATE ` + table + ` SET exact = SUBSTR(exact, 1, LENGTH(exact) - 1)`)
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

// BenchmarkExcludeFromFullDay excludes and includes a small report of a day with 200,000 shares
// and a full counter.
func BenchmarkExcludeFromFullDay(b *testing.B) {
	for _, db := range []func(testing.TB) storetest.DB{storetest.SQLite, storetest.Postgres} {
		db := db(b)
		s := db.Open(b, store.Options{})
		team := s.Team(storetest.Team(b, s, "a").ID)
		addDomain(b, team, ours)
		receive := func(report dmarcd.NewReport) dmarcd.ReportID {
			return musttest.Get(team.Receive(b.Context(), []*dmarcd.Delivery{storetest.Delivery(report)}))(b)[0][0].ID
		}
		for i := range 40 {
			receive(wide(fmt.Sprint(i), 5_000, 1))
		}
		receive(released(report("large", ours, storetest.Passed(ours, most))))
		small := receive(report("small", ours, storetest.Passed(ours, 1)))
		b.Run(db.Engine, func(b *testing.B) {
			for counted := false; b.Loop(); counted = !counted {
				musttest.Get(team.SetReportCounted(b.Context(), small, counted))(b)
			}
		})
	}
}
