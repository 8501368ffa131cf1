package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/rollup"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// addressesAsSenders treats each address as a sender.
func addressesAsSenders(ctx context.Context, t *store.Team, days dmarcd.Days, save func([]dmarcd.Sender) error, _ func([]dmarcd.DomainDay) error) error {
	var found []dmarcd.Sender
	err := t.Scan(ctx, "", days, atOnce, func(p rollup.Part) error {
		var b rollup.Block
		if err := b.Read(p); err != nil {
			return err
		}
		for _, share := range b.Shares {
			for _, r := range share.Records {
				for _, domain := range []dmarcd.DomainID{0, share.Domain} {
					found = append(found, dmarcd.Sender{
						Domain: domain, Key: rollup.AddressText(b.Addresses.At(r.Address)), SeenDays: dmarcd.SeenDays{First: share.Day, Last: share.Day},
					})
				}
			}
		}
		return nil
	})
	for _, one := range found { // a statement must not change a row twice
		if err == nil {
			err = save([]dmarcd.Sender{one})
		}
	}
	return err
}

// TestSendersOverAllTime changes the counted records in every way, and checks that the
// first and last days of senders cover all records that count or have expired.
func TestSendersOverAllTime(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours, "example.net")
		today := dmarcd.DayOf(in.clock.Now())
		from := func(source, domain string) aggregate.Record {
			r := storetest.Passed(domain, 1)
			r.Source = source
			return r
		}
		const one, two = "192.0.2.1", "192.0.2.2"
		want := func(step string, wanted map[string]string) {
			in.Helper()
			for more := true; more; {
				var err error
				if more, err = in.store.UpdateSenders(in.Context(), addressesAsSenders); err != nil {
					in.Fatalf("%s: %v", step, err)
				}
			}
			got := make(map[string]string)
			for _, name := range []string{"", ours, "example.net"} {
				seen := musttest.Get(in.team.Senders(in.Context(), name, []string{one, two, "none"}))(in)
				for key, days := range seen {
					got[name+" "+key] = fmt.Sprintf("%d %d", days.First-today, days.Last-today)
				}
			}
			if diff := cmp.Diff(wanted, got); diff != "" {
				in.Errorf("%s: -want +got\n%s", step, diff)
			}
		}
		receipts := in.receive(
			storetest.Aggregate("1", ours, today-40, from(one, ours)),
			storetest.Aggregate("2", ours, today-20, from(one, ours), from(two, ours)),
			storetest.Aggregate("3", ours, today-10, from(one, ours)),
			storetest.Aggregate("4", "example.net", today-45, from(one, "example.net")),
		)
		all := map[string]string{
			" " + one: "-45 -10", " " + two: "-20 -20", ours + " " + one: "-40 -10", ours + " " + two: "-20 -20", "example.net " + one: "-45 -45",
		}
		want("received", all)
		for i, shorter := range []string{"-20 -10", "-40 -10", "-40 -20"} {
			musttest.Get(in.team.SetReportCounted(in.Context(), receipts[i].ID, false))(in)
			excluded := map[string]string{" " + one: "-45 -10", " " + two: "-20 -20", ours + " " + one: shorter, ours + " " + two: "-20 -20", "example.net " + one: "-45 -45"}
			switch i {
			case 1:
				delete(excluded, " "+two)
				delete(excluded, ours+" "+two)
			case 2:
				excluded[" "+one] = "-45 -20"
			}
			want(fmt.Sprint("excluded report ", i), excluded)
			musttest.Get(in.team.SetReportCounted(in.Context(), receipts[i].ID, true))(in)
			want(fmt.Sprint("counted report ", i, " again"), all)
		}
		in.expire(store.Retention{Records: ofDays(30)})
		want("records expired", all)
		in.must(in.team.DeleteReport(in.Context(), receipts[0].ID))
		want("a report without records deleted", all)
		in.must(in.team.DeleteReport(in.Context(), receipts[2].ID))
		all[" "+one], all[ours+" "+one] = "-45 -20", "-40 -20"
		want("the last report deleted", all)
		in.delete("example.net")
		delete(all, "example.net "+one)
		all[" "+one] = "-40 -20"
		in.receive(storetest.Aggregate("5", ours, today-1, from(two, ours)))
		all[" "+two], all[ours+" "+two] = "-20 -1", "-20 -1"
		in.must(in.team.DeleteReport(in.Context(), receipts[1].ID))
		all[" "+one], all[ours+" "+one] = "-40 -40", "-40 -40"
		all[" "+two], all[ours+" "+two] = "-1 -1", "-1 -1"
		want("a domain and a report deleted", all)
		in.purge()
		if got := in.rows("senders"); got != len(all) {
			in.Errorf("got %d rows of senders after the purge, want %d", got, len(all))
		}
	})
}

// TestSendersAreTakenBackInSmallSteps excludes the first and the last day of many senders: their
// spans are shortened in short transactions, each with few statements whatever the number of days.
func TestSendersAreTakenBackInSmallSteps(t *testing.T) {
	t.Run("one domain", func(t *testing.T) { testTakenBack(t, 1, 4_500) })
	t.Run("ten domains", func(t *testing.T) { testTakenBack(t, 10, 900) })
}

// testTakenBack runs with this number of senders in the mail of each domain.
func testTakenBack(t *testing.T, domains, senders int) {
	t.Helper()
	eachInbox(t, func(in *inbox) {
		const days = 20
		var statements, steps int
		in.store = in.db.Open(in, store.Options{Now: in.clock.Now, Statement: func(query string) {
			switch {
			case strings.HasPrefix(query, "INSERT INTO senders"):
				steps++
				statements++
			case strings.HasPrefix(query, "DELETE FROM senders"), strings.HasPrefix(query, "UPDATE senders"):
				statements++
			}
		}})
		in.team = in.store.Team(in.team.ID())
		in.add(ours)
		for i := 1; i < domains; i++ {
			in.add(fmt.Sprintf("d%d.example", i))
		}
		ids := []dmarcd.DomainID{0}
		for _, domain := range musttest.Get(in.team.Domains(in.Context(), "", domains))(in) {
			ids = append(ids, domain.ID)
		}
		var reports []dmarcd.NewReport
		for i := range dmarcd.Day(days) {
			reports = append(reports, storetest.Aggregate(fmt.Sprint(i), ours, today-i, storetest.Passed(ours, 1)))
		}
		in.receive(reports...)
		// A third each of the senders is seen only on excluded days, until one, and from one on.
		spans := []dmarcd.SeenDays{{First: today - 3, Last: today - 2}, {First: today - 15, Last: today - 4}, {First: today - 1, Last: today}}
		find := func(_ context.Context, _ *store.Team, _ dmarcd.Days, save func([]dmarcd.Sender) error, _ func([]dmarcd.DomainDay) error) error {
			var found []dmarcd.Sender
			for i := range senders {
				for _, id := range ids {
					found = append(found, dmarcd.Sender{Domain: id, Key: fmt.Sprint(i), SeenDays: spans[i%3]})
				}
			}
			return save(found)
		}
		musttest.Get(in.store.UpdateSenders(in.Context(), find))(in)
		from, to := today-10, today-1
		musttest.Get(in.team.SetReportsCounted(in.Context(), store.ReportFilter{Days: dmarcd.Days{From: &from, To: &to}}, false))(in)
		statements, steps = 0, 0
		musttest.Get(in.store.UpdateSenders(in.Context(), find))(in)
		if steps != 3 || statements != 4*steps {
			in.Errorf("took %d statements in %d steps, want 12 in 3", statements, steps)
		}
		want := map[string]dmarcd.SeenDays{"1": {First: today - 15, Last: today - 15}, "2": {First: today, Last: today}}
		for _, name := range []string{"", ours} {
			if diff := cmp.Diff(want, musttest.Get(in.team.Senders(in.Context(), name, []string{"0", "1", "2"}))(in)); diff != "" {
				in.Errorf("%q: -want +got\n%s", name, diff)
			}
		}
		if got, want := in.rows("senders"), senders*2/3*len(ids); got != want {
			in.Errorf("got %d rows, want %d", got, want)
		}
	})
}

// TestSendersTakeTurns has one team with many changed days, after it changed its own senders and
// excluded a report, and one with a single day. A step reads a month of the first team.
func TestSendersTakeTurns(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		other := newTeam(in.T, in.store, "other")
		addDomain(in, other, ours)
		in.add(ours)
		var reports []dmarcd.NewReport
		for i := range dmarcd.Day(100) {
			reports = append(reports, storetest.Aggregate(fmt.Sprint(i), ours, today-i, storetest.Passed(ours, 1)))
		}
		receipts := in.receive(reports...)
		step := func() (days map[dmarcd.TeamID]int, more bool) {
			in.Helper()
			days = map[dmarcd.TeamID]int{}
			more = musttest.Get(in.store.UpdateSenders(in.Context(), func(_ context.Context, t *store.Team, period dmarcd.Days, _ func([]dmarcd.Sender) error, _ func([]dmarcd.DomainDay) error) error {
				days[t.ID()] += int(*period.To-*period.From) + 1
				return nil
			}))(in)
			return days, more
		}
		for i, change := range []func() error{
			func() error { return nil },
			func() error { return in.team.SetTeamSender(in.Context(), dmarcd.TeamSender{Key: "a", Name: "A"}) },
			func() error { _, err := in.team.SetReportCounted(in.Context(), receipts[7].ID, false); return err },
		} {
			in.must(change())
			storetest.Count(in, other, ours, dmarcd.DayCount{Day: today - dmarcd.Day(i), Summary: passed(5)})
			days, more := step()
			if days[in.team.ID()] > 30 || days[other.ID()] != 1 || !more {
				in.Errorf("change %d: the first step read %v, want at most 30 days of the first team and 1 of the other", i, days)
			}
			total := days[in.team.ID()]
			for more {
				days, more = step()
				total += days[in.team.ID()]
			}
			if total != len(reports) {
				in.Errorf("change %d: got %d days read, want %d", i, total, len(reports))
			}
		}
	})
}
