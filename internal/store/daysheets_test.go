package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// makeSheets makes all sheets that there are to make.
func makeSheets(t testing.TB, s *store.Store) {
	t.Helper()
	for more := true; more; {
		var err error
		if more, err = s.MakeSheets(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSheets has days with and without a sheet side by side: what is read is the same
// before and after they are made.
func TestSheets(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours, "example.net")
		rejected := storetest.Failed("mail."+ours, 3000)
		rejected.DKIMResults = []aggregate.DKIMResult{{Domain: "elsewhere.example", Selector: "s", Result: "fail", HumanResult: "body \x1e altered"}}
		quarantined := storetest.Failed(ours, 2)
		quarantined.Disposition, quarantined.SPF, quarantined.Source = aggregate.PolicyQuarantine, "pass", "no \x1f address"
		receive(in, in.team,
			storetest.Aggregate("1", ours, 100, storetest.Passed(ours, 70_000), rejected),
			storetest.Aggregate("2", ours, 101, quarantined), // too few for a sheet
			storetest.Aggregate("3", ours, 102, storetest.Passed(ours, 2000), storetest.Passed(ours, 0)),
			storetest.Aggregate("4", "example.net", 102, storetest.Passed("example.net", 1)),
		)
		before := sentLines(in, in.team, "", dmarcd.Days{})
		if len(before) != 5 {
			in.Fatalf("got %q, want 5 records", before)
		}
		makeSheets(in, in.store)
		if got := in.rows("day_sheets"); got != 2 {
			in.Errorf("got %d sheets, want 2", got)
		}
		// Only what the sheets have is left.
		in.damage(`DELETE FROM records WHERE report_id IN (SELECT report_id FROM shares WHERE day <> 101)`)
		if diff := cmp.Diff(before, sentLines(in, in.team, "", dmarcd.Days{})); diff != "" {
			in.Errorf("on sheets: -before +after\n%s", diff)
		}
		for day, want := range map[dmarcd.Day]int{99: 0, 100: 2, 101: 1, 102: 2} {
			if got := sentLines(in, in.team, "", daysOf(day, day)); len(got) != want {
				in.Errorf("%s: got %q, want %d records", day, got, want)
			}
		}
	})
}

// TestDomainIsReadFromSheets has a domain with so many records that its part of the
// sheets is read faster than the records.
func TestDomainIsReadFromSheets(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours, "example.net")
		var many []aggregate.Record
		for i := range int64(600) {
			many = append(many, storetest.Passed(ours, 5+i%3), storetest.Failed(ours, 5+i%7))
		}
		receive(in, in.team,
			storetest.Aggregate("1", "example.net", 100, storetest.Passed("example.net", 7)),
			storetest.Aggregate("2", ours, 100, many...),
			storetest.Aggregate("3", ours, 101, storetest.Passed(ours, 3)),
		)
		before := sentLines(in, in.team, ours, dmarcd.Days{})
		makeSheets(in, in.store)
		in.damage(`DELETE FROM records WHERE report_id IN (SELECT report_id FROM shares WHERE day = 100)`)
		after := sentLines(in, in.team, ours, dmarcd.Days{})
		if diff := cmp.Diff(before, after); diff != "" || len(after) != len(many)+1 {
			in.Errorf("got %d records, want %d: -before +after\n%s", len(after), len(many)+1, diff)
		}
	})
}

// TestSheetsGrow has reports come in about a day that is on a sheet: they are read from
// beside it, and it is made again once they are many, or it is old.
func TestSheetsGrow(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours, "example.net")
		raw := in.db.SQL(in)
		came := 0
		come := func(name string) {
			came++
			receive(in, in.team, storetest.Aggregate(fmt.Sprint(came), name, 100, storetest.Passed(name, int64(5000+came))))
		}
		records := func() (n int) {
			makeSheets(in, in.store)
			in.must(raw.QueryRowContext(in.Context(), `SELECT records FROM day_sheets`).Scan(&n))
			if got := sentLines(in, in.team, "", daysOf(100, 100)); len(got) != came {
				in.Errorf("%d on the sheet: got %q, want %d records", n, got, came)
			}
			return n
		}
		come(ours)
		if got := records(); got != 1 {
			in.Errorf("got %d records on the first sheet, want 1", got)
		}
		for range 9 {
			come("example.net")
			if got := records(); got != 1 {
				in.Errorf("after %d: got %d records on the sheet, want it left alone", came, got)
			}
		}
		come(ours)
		if got := records(); got != came {
			in.Errorf("got %d records on the sheet, want %d", got, came)
		}
		come(ours)
		in.clock.advance(10 * time.Minute)
		if got := records(); got != came {
			in.Errorf("after some time: got %d records on the sheet, want %d", got, came)
		}
	})
}

// TestSheetsOfWhatGoes holds that nothing is left on a sheet of what went.
func TestSheetsOfWhatGoes(t *testing.T) {
	for name, remove := range map[string]func(in *inbox){
		"a domain that is deleted": func(in *inbox) { in.delete(ours) },
		"records past their time": func(in *inbox) {
			in.clock.advance(ofDays(50))
			in.expire(store.Retention{Records: ofDays(10), Counters: ofDays(100)})
		},
		"days past their time": func(in *inbox) {
			in.clock.advance(ofDays(50))
			in.expire(store.Retention{Records: ofDays(10), Counters: ofDays(10)})
		},
		"a report that says nothing any more": func(in *inbox) { in.receive(report("1", ours)) },
	} {
		t.Run(name, func(t *testing.T) {
			eachInbox(t, func(in *inbox) {
				in.add(ours)
				in.wantReceived("stored", report("1", ours, storetest.Passed(ours, 5000)))
				makeSheets(in, in.store)
				if got := in.rows("day_sheets"); got != 1 {
					in.Fatalf("got %d sheets, want 1", got)
				}
				remove(in)
				if got := sentLines(in, in.team, "", dmarcd.Days{}); len(got) != 0 {
					in.Errorf("got %q at once, want nothing", got)
				}
				makeSheets(in, in.store)
				if got := in.rows("day_sheets"); got != 0 {
					in.Errorf("got %d sheets, want none", got)
				}
				in.sound()
			})
		})
	}
}

// TestSheetsWhileReportsAreReplaced has sheets made and read while each report is
// replaced again and again: no answer has two versions of one.
func TestSheetsWhileReportsAreReplaced(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		const reports, versions = 5, 8
		ctx, done := context.WithCancel(in.Context())
		var group errgroup.Group
		group.Go(func() error {
			defer done()
			for version := range int64(versions) {
				for id := range int64(reports) {
					again := storetest.Aggregate(fmt.Sprint(id), ours, 100, storetest.Passed(ours, 5000+version*reports+id))
					if _, err := in.team.Receive(in.Context(), []*dmarcd.Delivery{storetest.Delivery(again)}); err != nil {
						return err
					}
				}
			}
			return nil
		})
		group.Go(func() error {
			for ctx.Err() == nil {
				in.clock.advance(time.Hour)
				if _, err := in.store.MakeSheets(in.Context()); err != nil && !errors.Is(err, dmarcd.ErrTemporary) {
					return err
				}
			}
			return nil
		})
		group.Go(func() error {
			for ctx.Err() == nil {
				mail, err := in.team.Sent(in.Context(), "", dmarcd.Days{}, sentLimits(100))
				if err != nil {
					return err
				}
				seen := make(map[int64]int64)
				for _, share := range mail.Shares {
					for _, r := range share.Records {
						if before, twice := seen[r.Count%reports]; twice {
							return fmt.Errorf("a report has %d and %d messages at once", before, r.Count)
						}
						seen[r.Count%reports] = r.Count
					}
				}
			}
			return nil
		})
		in.must(group.Wait())
		in.must(sheetsTellTheRecords(in.Context(), in.team))
		makeSheets(in, in.store)
		in.must(sheetsTellTheRecords(in.Context(), in.team))
		in.sound()
	})
}

// TestDamagedSheet cuts a sheet wherever it can be cut.
func TestDamagedSheet(t *testing.T) {
	t.Parallel()
	in := newInbox(t, storetest.SQLite(t))
	in.add(ours)
	in.wantReceived("stored", report("1", ours, storetest.Passed(ours, 5000), storetest.Failed("a."+ours, 7)))
	makeSheets(in, in.store)
	raw := in.db.SQL(in)
	var sheet []byte
	in.must(raw.QueryRowContext(in.Context(), `SELECT sheet FROM day_sheets`).Scan(&sheet))
	for n := range len(sheet) + 1 {
		for _, bad := range [][]byte{sheet[:n], slices.Concat(sheet[:n], []byte{0xff}, sheet[min(n+1, len(sheet)):])} {
			if _, err := raw.ExecContext(in.Context(), `UPDATE day_sheets SET sheet = $1`, bad); err != nil {
				in.Fatal(err)
			}
			mail, err := in.team.Sent(in.Context(), "", dmarcd.Days{}, sentLimits(100))
			if n == len(sheet) && len(bad) == n {
				in.must(err) // nothing was cut
				continue
			}
			if err == nil && len(bad) != len(sheet) {
				in.Errorf("cut at %d of %d: got %+v, want an error", n, len(sheet), mail)
			}
		}
	}
}

// BenchmarkSheets reads 30 days of 33,000 records each.
func BenchmarkSheets(b *testing.B) {
	s := storetest.SQLite(b).Open(b, store.Options{})
	created, err := s.CreateTeam(b.Context(), "a", true)
	if err != nil {
		b.Fatal(err)
	}
	team := s.Team(created.ID)
	const days, reports, records = 30, 330, 100
	for domain := range reports {
		addDomain(b, team, fmt.Sprintf("d%d.example", domain))
	}
	for day := range dmarcd.Day(days) {
		var deliveries []*dmarcd.Delivery
		for n := range reports {
			var rows []aggregate.Record
			for i := range records {
				row := storetest.Passed(fmt.Sprintf("d%d.example", n), 1)
				row.Source = fmt.Sprintf("192.0.%d.%d", i, n%250)
				rows = append(rows, row)
			}
			deliveries = append(deliveries, storetest.Delivery(storetest.Aggregate(fmt.Sprint(day, n), fmt.Sprintf("d%d.example", n), day, rows...)))
		}
		if _, err := team.Receive(b.Context(), deliveries); err != nil {
			b.Fatal(err)
		}
	}
	makeSheets(b, s)
	b.ReportAllocs()
	for last := dmarcd.Day(days); b.Loop(); last++ { // what is not remembered
		mail, err := team.Sent(b.Context(), "", dmarcd.Days{To: &last}, sentLimits(days*reports*records))
		if err != nil || len(mail.Shares) != days*reports {
			b.Fatalf("got %d shares, %v", len(mail.Shares), err)
		}
	}
}
