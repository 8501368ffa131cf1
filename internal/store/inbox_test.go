package store_test

import (
	"database/sql"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// today is the day of newClock.
var today = dmarcd.DayOf(newClock().Now())

// inbox is a team that receives reports. Its methods end the test on an error.
type inbox struct {
	*testing.T
	db    storetest.DB
	clock *clock
	store *store.Store
	team  *store.Team
	teams *atomic.Int64 // made by play
	raw   *sql.DB       // bypasses the store; nil before the first call of sql
}

// eachInbox runs a test with an inbox of its own on each engine.
func eachInbox(t *testing.T, test func(in *inbox)) {
	t.Helper()
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) { test(newInbox(t, db)) })
}

func newInbox(t *testing.T, db storetest.DB) *inbox {
	t.Helper()
	clock := newClock()
	s := db.Open(t, store.Options{Now: clock.Now})
	return &inbox{T: t, db: db, clock: clock, store: s, team: newTeam(t, s, "a"), teams: new(atomic.Int64), raw: db.SQL(t)}
}

// row runs a row of a table with a team of its own.
func (in *inbox) row(name string, test func(in *inbox)) {
	in.Helper()
	in.Run(name, func(t *testing.T) {
		row := *in
		row.T, row.team = t, newTeam(t, in.store, name)
		test(&row)
	})
}

// sql returns the database without the store, to inspect or damage it.
func (in *inbox) sql() *sql.DB {
	in.Helper()
	if in.raw == nil {
		in.raw = in.db.SQL(in)
	}
	return in.raw
}

// must ends the test with an error.
func (in *inbox) must(err error) {
	in.Helper()
	musttest.Do(in, err)
}

// add adds domains one by one.
func (in *inbox) add(names ...string) {
	in.Helper()
	for _, name := range names {
		addDomain(in, in.team, name)
	}
}

func (in *inbox) delete(name string) {
	in.Helper()
	in.must(in.team.DeleteDomain(in.Context(), name))
}

// purge purges until nothing is left to purge.
func (in *inbox) purge() (steps int) {
	in.Helper()
	for more := true; more; steps++ {
		more = musttest.Get(in.store.Purge(in.Context()))(in)
		in.sound()
	}
	return steps
}

// expire removes all data past its retention.
func (in *inbox) expire(retained store.Retention) (steps int) {
	in.Helper()
	for more := true; more; steps++ {
		more = musttest.Get(in.store.Expire(in.Context(), retained))(in)
		in.sound()
	}
	return steps
}

// receive receives reports, one per delivery, in one transaction.
func (in *inbox) receive(reports ...dmarcd.NewReport) []dmarcd.Receipt {
	in.Helper()
	deliveries := make([]*dmarcd.Delivery, len(reports))
	for i, report := range reports {
		deliveries[i] = storetest.Delivery(report)
	}
	return in.deliver(deliveries...)
}

// deliver receives deliveries in one transaction and returns all receipts.
func (in *inbox) deliver(deliveries ...*dmarcd.Delivery) []dmarcd.Receipt {
	in.Helper()
	receipts := musttest.Get(in.team.Receive(in.Context(), deliveries))(in)
	if len(receipts) != len(deliveries) {
		in.Fatalf("got receipts of %d deliveries, want %d", len(receipts), len(deliveries))
	}
	var all []dmarcd.Receipt
	for i, some := range receipts {
		if got, want := len(some), len(deliveries[i].Reports)+len(deliveries[i].Rejections); got != want {
			in.Fatalf("delivery %d: got %d receipts, want %d", i, got, want)
		}
		all = append(all, some...)
	}
	return all
}

// wantReceived receives reports and compares their statuses, separated by spaces.
func (in *inbox) wantReceived(want string, reports ...dmarcd.NewReport) {
	in.Helper()
	if got := statuses(in.receive(reports...)); got != want {
		in.Errorf("received: got %q, want %q", got, want)
	}
	in.sound()
}

func statuses(receipts []dmarcd.Receipt) string {
	words := make([]string, len(receipts))
	for i, receipt := range receipts {
		words[i] = string(receipt.Status)
	}
	return strings.Join(words, " ")
}

// report returns an aggregate report of today about a domain.
func report(id, domain string, records ...aggregate.Record) dmarcd.NewReport {
	return storetest.Aggregate(id, domain, today, records...)
}

// sound fails the test if the counters do not add up.
func (in *inbox) sound() {
	in.Helper()
	if testing.Short() {
		return // it reads all tables
	}
	problem := musttest.Get(in.store.Integrity(in.Context()))(in)
	if problem != "" {
		in.Errorf("integrity: %s", problem)
	}
}

// wantCounted compares the messages of each present domain that passed and failed DMARC, by all
// methods that return them.
func (in *inbox) wantCounted(want map[string]dmarcd.Summary) {
	in.Helper()
	in.sound()
	ctx := in.Context()
	domains := musttest.Get(in.team.Domains(ctx, "", 1000))(in)
	got, daily, byDomain := map[string]dmarcd.Summary{}, map[string]dmarcd.Summary{}, map[string]dmarcd.Summary{}
	var total dmarcd.Summary
	from := dmarcd.Day(-1 << 31)
	for _, domain := range domains {
		got[domain.Name] = musttest.Get(in.team.DomainSummary(ctx, domain.Name, dmarcd.Days{}))(in)
		ranged := musttest.Get(in.team.DomainSummary(ctx, domain.Name, dmarcd.Days{From: &from}))(in)
		if ranged != got[domain.Name] {
			in.Errorf("%s by day: got %+v, want %+v", domain.Name, ranged, got[domain.Name])
		}
		days := musttest.Get(in.team.DomainDaily(ctx, domain.Name, dmarcd.Days{}, 10_000))(in)
		daily[domain.Name] = sumOf(days)
		byDomain[domain.Name] = dmarcd.Summary{}
		total.Compliant += want[domain.Name].Compliant
		total.NonCompliant += want[domain.Name].NonCompliant
	}
	for after := (store.DailyCursor{}); ; {
		page := musttest.Get(in.team.DailyByDomain(ctx, dmarcd.Days{}, after, 7))(in)
		if len(page) == 0 {
			break
		}
		for _, day := range page {
			byDomain[day.Domain] = sumOf([]store.DailyCounts{{Counts: dmarcd.Counts{Summary: byDomain[day.Domain]}}, day})
		}
		after = store.DailyCursor{Domain: page[len(page)-1].Domain, Day: page[len(page)-1].Day}
	}
	for what, counted := range map[string]map[string]dmarcd.Summary{"summaries": got, "days": daily, "days of all domains": byDomain} {
		if diff := cmp.Diff(want, counted); diff != "" {
			in.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	sum := musttest.Get(in.team.Summary(ctx, dmarcd.Days{}))(in)
	days := musttest.Get(in.team.Daily(ctx, dmarcd.Days{}, 10_000))(in)
	if inDays := sumOf(days); sum != total || inDays != total {
		in.Errorf("the team: got %+v, and %+v by day; want %+v", sum, inDays, total)
	}
}

func sumOf(days []store.DailyCounts) dmarcd.Summary {
	var sum dmarcd.Summary
	for _, day := range days {
		sum.Compliant += day.Compliant
		sum.NonCompliant += day.NonCompliant
	}
	return sum
}

// passed returns counts of compliant messages.
func passed(n int64) dmarcd.Summary { return dmarcd.Summary{Compliant: n} }

// ofDays returns the duration of some days.
func ofDays(n int) time.Duration { return time.Duration(n) * 24 * time.Hour }

// rows counts the rows of a table, without records that wait for their partition to be dropped.
func (in *inbox) rows(table string) int {
	in.Helper()
	query := `SELECT count(*) FROM ` + table
	if table == "records" {
		query += ` WHERE NOT EXISTS (SELECT 1 FROM reports WHERE reports.team_id = records.team_id AND reports.id = records.report_id AND emptied_at > 0)`
	}
	var n int
	in.must(in.sql().QueryRowContext(in.Context(), query).Scan(&n))
	return n
}

// damage changes rows without the store.
func (in *inbox) damage(statement string) {
	in.Helper()
	musttest.Get(in.sql().ExecContext(in.Context(), statement))(in)
}
