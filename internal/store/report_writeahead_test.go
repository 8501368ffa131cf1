package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// manyRecords are more than one transaction writes.
const manyRecords = 12_500

// large returns a report with many records of one message each. It calls at before each record,
// with its number.
func large(id string, at func(n int) error) dmarcd.NewReport {
	record := storetest.Passed(ours, 1)
	report := storetest.Aggregate(id, ours, today, record)
	report.Records, report.Shares[0].Records = manyRecords, manyRecords
	for range manyRecords - 1 {
		report.Shares[0].Add(dmarcd.CountsOf(record))
	}
	report.Messages, report.Compliant = report.Shares[0].Total(), report.Shares[0].Compliant
	report.EachRecord = func(yield func(aggregate.Record, error) bool) {
		for n := range manyRecords {
			var err error
			if at != nil {
				err = at(n)
			}
			if !yield(record, err) {
				return
			}
		}
	}
	return report
}

// TestLargeReport writes a report in many transactions: nothing is visible before the
// end, everything after.
func TestLargeReport(t *testing.T) {
	if testing.Short() {
		return
	}
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		other := newTeam(in.T, in.store, "b")
		addDomain(in, other, ours)
		looked := false
		in.receive(large("1", func(n int) error {
			if n != manyRecords-1 || looked {
				return nil
			}
			looked = true
			// Nothing is locked: others can write, even for the same domain.
			ctx, cancel := context.WithTimeout(in.Context(), time.Minute)
			defer cancel()
			if err := other.SetPurpose(ctx, ours, dmarcd.PurposeBusiness); err != nil {
				return err
			}
			in.wantCounted(map[string]dmarcd.Summary{ours: {}})
			reports, err := in.team.Reports(ctx, store.ReportFilter{}, 0, 10)
			if err != nil || len(reports) != 0 {
				in.Errorf("got %d reports, %v before the last transaction, want none", len(reports), err)
			}
			in.receive(report("small", ours, storetest.Passed(ours, 3)))
			in.purgeAll()
			return nil
		}))
		in.wantCounted(map[string]dmarcd.Summary{ours: {Compliant: manyRecords + 3}})
		if got := in.rows("records"); got != manyRecords+1 {
			in.Errorf("got %d records, want %d", got, manyRecords+1)
		}
		// A duplicate is not written ahead.
		before := in.store.Stats().Queries
		if got := in.receive(large("1", func(int) error { return errors.New("read for nothing") }))[0].Status; got != dmarcd.Duplicate {
			in.Errorf("sent again: got %s, want a duplicate", got)
		}
		if queries := in.store.Stats().Queries - before; queries > 50 {
			in.Errorf("a duplicate took %d queries", queries)
		}
		in.purgeAll()
		in.sound()
		in.delete(ours)
		in.purgeAll()
		if n := in.rows("records") + in.rows("shares"); n != 0 {
			in.Errorf("%d rows left after the domain was deleted", n)
		}
	})
}

// countSteps opens the store again, and counts the transactions that write records ahead.
func (in *inbox) countSteps() *int {
	steps := 0
	in.store = in.db.Open(in, store.Options{Now: in.clock.Now, Statement: func(query string) {
		if strings.HasPrefix(query, "UPDATE reports SET pending_until = $1") {
			steps++
		}
	}})
	in.team = in.store.Team(in.team.ID())
	return &steps
}

// TestStepsOfAReport receives reports of several sizes. On SQLite, which has one writer, the steps
// are shorter, so that other teams only wait for milliseconds.
func TestStepsOfAReport(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		steps := in.countSteps()
		for records, want := range map[int]map[string]int{
			900:   {"sqlite": 0, "postgres": 0},
			1_100: {"sqlite": 3, "postgres": 0},
			4_100: {"sqlite": 9, "postgres": 3},
		} {
			*steps = 0
			in.wantReceived("stored", report(fmt.Sprint(records), ours, slices.Repeat([]aggregate.Record{storetest.Passed(ours, 1)}, records)...))
			if *steps != want[in.db.Engine] {
				in.Errorf("got %d records in %d steps, want %d", records, *steps, want[in.db.Engine])
			}
		}
	})
}

// TestLongTextsAreWrittenAhead receives a report with few records that have long texts.
func TestLongTextsAreWrittenAhead(t *testing.T) {
	if testing.Short() {
		return
	}
	eachInbox(t, func(in *inbox) {
		const records, size, perStep = 3_000, 8 << 10, 300 // 2 MiB are 256 records
		steps := in.countSteps()
		in.add(ours)
		record := storetest.Passed(ours, 1)
		record.Reasons = []aggregate.Reason{{Type: "other", Comment: strings.Repeat("x", size)}}
		report := storetest.Aggregate("long", ours, today, slices.Repeat([]aggregate.Record{record}, records)...)
		report.TextBytes = records * size
		in.wantReceived("stored", report)
		if *steps < records/perStep {
			in.Errorf("got the records in %d steps, want at least %d", *steps, records/perStep)
		}
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(records)})
		if got := in.rows("records"); got != records {
			in.Errorf("got %d records, want %d", got, records)
		}
	})
}

// wide returns a report about many From domains with the same count each.
func wide(id string, domains int, count int64) dmarcd.NewReport {
	var records []aggregate.Record
	for i := range domains {
		records = append(records, storetest.Passed(fmt.Sprintf("d%d.%s", i, ours), count))
	}
	return storetest.Aggregate(id, ours, today, records...)
}

// manyShares, with their records, are more than one transaction writes.
const manyShares = 5_100

// TestWideReportIsCounted checks that the shares of a report are not read one by one while
// others wait for the writer.
func TestWideReportIsCounted(t *testing.T) {
	if testing.Short() {
		return
	}
	eachInbox(t, func(in *inbox) {
		ctx := in.Context()
		eachShare := regexp.MustCompile(`^SELECT [a-z_., ]+ FROM shares\b`)
		in.store = in.db.Open(in, store.Options{Now: in.clock.Now, Statement: func(query string) {
			if eachShare.MatchString(query) {
				in.Errorf("reads single shares: %s", query)
			}
		}})
		in.team = in.store.Team(in.team.ID())
		in.add(ours)
		in.wantReceived("stored", wide("1", manyShares, 3))
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(3 * manyShares)})
		in.wantReceived("replaced", wide("1", manyShares, 2))
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(2 * manyShares)})
		in.wantReceived("stored", wide("2", manyShares, 1))
		for _, counted := range []bool{false, true} {
			want := map[bool]int64{true: 3 * manyShares}[counted]
			musttest.Get(in.team.SetReportsCounted(ctx, store.ReportFilter{}, counted))(in)
			in.wantCounted(map[string]dmarcd.Summary{ours: passed(want)})
		}
	})
}

// purgeAll purges without a consistency check after each step.
func (in *inbox) purgeAll() {
	in.Helper()
	storetest.All(in, in.store.Purge)
	in.sound()
}

var errStopped = errors.New("stopped")

// TestLargeReportThatIsNotReceived interrupts the reception by an error or a crash: the purge
// removes what was written.
func TestLargeReportThatIsNotReceived(t *testing.T) {
	if testing.Short() {
		return
	}
	for _, how := range []string{"error", "crash"} {
		t.Run(how, func(t *testing.T) {
			eachInbox(t, func(in *inbox) {
				in.add(ours)
				before := in.db.Dump(in)
				delivery := storetest.Delivery(large("1", func(n int) error {
					if n < manyRecords*3/4 {
						return nil
					}
					if how == "crash" {
						panic(errStopped)
					}
					return errStopped
				}))
				delivery.Original = storetest.Original(bytes.Repeat([]byte("0123456789abcdef"), 1<<16)) // 1 MiB
				func() {
					defer func() {
						if value := recover(); value != nil && how != "crash" {
							panic(value)
						}
					}()
					if _, err := in.team.Receive(in.Context(), []*dmarcd.Delivery{delivery}); !errors.Is(err, errStopped) {
						in.Errorf("got %v, want the error of the reader", err)
					}
				}()
				if in.rows("records") == 0 {
					in.Error("nothing was written before the error")
				}
				in.wantCounted(map[string]dmarcd.Summary{ours: {}})
				in.clock.advance(11 * time.Minute)
				in.purgeAll()
				if usage, err := in.team.Usage(in.Context()); err != nil || usage[dmarcd.QuotaStored] != 0 {
					in.Errorf("got the usage %v and %v, want nothing stored", usage, err)
				}
				// Refunded charges leave a row of zeros.
				after := regexp.MustCompile(`team_usage: \[\d+ \d+ 0 0 0\]\n`).ReplaceAllString(in.db.Dump(in), "")
				if after != before {
					in.Errorf("something is left:\n%s", after)
				}
			})
		})
	}
}

// TestLeaseOfALargeReportEnds purges a report while it is received: the reception starts
// again.
func TestLeaseOfALargeReportEnds(t *testing.T) {
	if testing.Short() {
		return
	}
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		purged := false
		delivery := storetest.Delivery(large("1", func(n int) error {
			if n == manyRecords/2 && !purged {
				purged = true
				in.clock.advance(time.Hour)
				in.purgeAll()
			}
			return nil
		}))
		delivery.Original = storetest.Original(bytes.Repeat([]byte("0123456789abcdef"), 1<<16))
		in.deliver(delivery)
		in.wantCounted(map[string]dmarcd.Summary{ours: {Compliant: manyRecords}})
		in.purgeAll()
		if got := in.rows("records"); got != manyRecords {
			in.Errorf("got %d records, want %d", got, manyRecords)
		}
		reports := musttest.Get(in.team.Reports(in.Context(), store.ReportFilter{}, 0, 10))(in)
		original := musttest.Get(in.team.ReportOriginal(in.Context(), reports[0].ID))(in)
		if n, err := io.Copy(io.Discard, original.Packed); err != nil || n != 1<<20 {
			in.Errorf("read %d bytes of the original, %v, want 1 MiB", n, err)
		}
	})
}

// TestReplicasReceiveTheSameLargeReport sends the same large reports, and versions of
// one, to several processes at once.
func TestReplicasReceiveTheSameLargeReport(t *testing.T) {
	if testing.Short() {
		return
	}
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		teams := in.replicas(3)
		var mu sync.Mutex
		became := map[dmarcd.ReceiptStatus]int{}
		together(teams, func(i int, team *store.Team) {
			version := storetest.Aggregate("version", ours, today, storetest.Passed(ours, int64(1+i)))
			receipts, err := [][]dmarcd.Receipt(nil), dmarcd.ErrTemporary
			for errors.Is(err, dmarcd.ErrTemporary) { // as every caller does: SQLite has no queue of writers
				receipts, err = team.Receive(in.Context(), []*dmarcd.Delivery{
					storetest.Delivery(large("1", nil)), storetest.Delivery(version),
				})
			}
			if err != nil {
				in.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			became[receipts[0][0].Status]++
		})
		if became[dmarcd.Stored] != 1 || became[dmarcd.Duplicate] != 2 {
			in.Errorf("the report became %v, want it stored once", became)
		}
		in.purgeAll()
		if got := in.rows("records"); got != manyRecords+3 {
			in.Errorf("got %d records, want %d", got, manyRecords+3)
		}
	})
}

// TestDomainsChangeWhileALargeReportIsReceived adds or deletes the domain of a report
// between the transactions of its reception.
func TestDomainsChangeWhileALargeReportIsReceived(t *testing.T) {
	if testing.Short() {
		return
	}
	for _, what := range []string{"added", "deleted", "deleted and purged", "deleted and added"} {
		t.Run(what, func(t *testing.T) {
			eachInbox(t, func(in *inbox) {
				in.add("kept.example")
				if what != "added" {
					in.add(ours)
				}
				changed := false
				in.receive(large("1", func(n int) error {
					if n != manyRecords/2 || changed {
						return nil
					}
					changed = true
					switch what {
					case "added":
						in.add(ours)
					case "deleted":
						in.delete(ours)
					case "deleted and purged":
						in.delete(ours)
						in.purgeAll()
					case "deleted and added":
						in.delete(ours)
						in.purgeAll()
						in.add(ours)
					}
					return nil
				}))
				in.sound()
				want := map[string]dmarcd.Summary{"kept.example": {}}
				if what == "added" || what == "deleted and added" {
					want[ours] = dmarcd.Summary{Compliant: manyRecords}
				}
				in.wantCounted(want)
				in.purgeAll()
				in.wantCounted(want)
			})
		})
	}
}
