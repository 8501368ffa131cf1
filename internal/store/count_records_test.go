package store_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/rollup"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// sentBy describes the records of the given days, in order.
func sentBy(ctx context.Context, team *store.Team, name string, days dmarcd.Days) ([]string, error) {
	var lines []string
	err := eachSent(ctx, team, name, days, func(b *rollup.Block, s *rollup.Share, r *rollup.Record) error {
		lines = append(lines, fmt.Sprintf("%s %s %s: %s %d dkim=%t spf=%t %s envelope=%q", s.Day, s.Reporter, s.From,
			rollup.AddressText(b.Addresses.At(r.Address)), r.Count, r.Outcome.DKIM(), r.Outcome.SPF(), r.Outcome.Disposition(), b.Identities[r.Identity].Envelope))
		return nil
	})
	slices.Sort(lines)
	return lines, err
}

// eachSent calls visit with the records of the given days.
func eachSent(ctx context.Context, team *store.Team, name string, days dmarcd.Days, visit func(*rollup.Block, *rollup.Share, *rollup.Record) error) error {
	var block rollup.Block
	return team.Scan(ctx, name, days, atOnce, func(part rollup.Part) error {
		if err := block.Read(part); err != nil {
			return err
		}
		for i := range block.Shares {
			for j := range block.Shares[i].Records {
				if err := visit(&block, &block.Shares[i], &block.Shares[i].Records[j]); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// atOnce is a turn that never waits.
func atOnce() (end func()) { return func() {} }

// sentPositions returns the positions of all records.
func sentPositions(ctx context.Context, team *store.Team) (positions []dmarcd.SentPosition, messages int64, err error) {
	err = eachSent(ctx, team, "", dmarcd.Days{}, func(_ *rollup.Block, s *rollup.Share, r *rollup.Record) error {
		positions = append(positions, dmarcd.SentPosition{Report: s.Report, Share: s.N, N: int(r.N)})
		messages += r.Count
		return nil
	})
	return positions, messages, err
}

func sentLines(t testing.TB, team *store.Team, name string, days dmarcd.Days) []string {
	t.Helper()
	return musttest.Get(sentBy(t.Context(), team, name, days))(t)
}

func daysOf(from, to dmarcd.Day) dmarcd.Days { return dmarcd.Days{From: &from, To: &to} }

func receive(t testing.TB, team *store.Team, reports ...dmarcd.NewReport) {
	t.Helper()
	for _, r := range reports {
		musttest.Get(team.Receive(t.Context(), []*dmarcd.Delivery{storetest.Delivery(r)}))(t)
	}
}

// Scans that are slow to process their records leave connections for short reads, however many
// teams make them, and those of one team for the scan of another.
func TestScansLeaveReadersFree(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		withMail := func(name string) *store.Team {
			team := newTeam(t, s, name)
			addDomain(t, team, "example.com")
			receive(t, team, storetest.Aggregate("1", "example.com", 100, storetest.Passed("example.com", 1)))
			return team
		}
		quiet, busy := withMail("quiet"), withMail("busy")
		slow, stop := context.WithCancel(t.Context())
		var scans sync.WaitGroup
		defer scans.Wait()
		defer stop()
		scan := func(team *store.Team) {
			begun := make(chan struct{}, 30)
			for range cap(begun) {
				scans.Go(func() {
					_ = team.Scan(slow, "", dmarcd.Days{}, atOnce, func(rollup.Part) error {
						begun <- struct{}{}
						<-slow.Done()
						return slow.Err()
					})
				})
			}
			<-begun
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		scan(busy)
		if lines, err := sentBy(ctx, quiet, "", dmarcd.Days{}); err != nil || len(lines) != 1 {
			t.Errorf("got %v, %v beside the scans of another team", lines, err)
		}
		scan(withMail("busy too"))
		if _, err := quiet.Domain(ctx, "example.com"); err != nil {
			t.Errorf("a short read beside the scans of two other teams: %v", err)
		}
	})
}

// TestScanTakesTurns reads records that are not in a rollup. The turn must be free during each
// visit: the visitor may need one.
func TestScanTakesTurns(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		const large = 1001 // its records are read in two steps
		held, reading := 0, false
		var heldByReads []int
		team := newTeam(t, db.Open(t, store.Options{Statement: func(query string) {
			if reading && strings.Contains(query, "FROM records") {
				heldByReads = append(heldByReads, held)
			}
		}}), "a")
		addDomain(t, team, "example.com")
		receive(t, team,
			storetest.Aggregate("1", "example.com", 100, slices.Repeat([]aggregate.Record{storetest.Passed("example.com", 1)}, large)...),
			storetest.Aggregate("2", "example.com", 100, storetest.Passed("example.com", 1)))
		turn := func() (end func()) {
			held++
			return func() { held-- }
		}
		visits := 0
		reading = true
		musttest.Do(t, team.Scan(t.Context(), "", dmarcd.Days{}, turn, func(rollup.Part) error {
			visits++
			if held != 0 {
				t.Errorf("got %d turns during a visit, want none", held)
			}
			return nil
		}))
		reading = false
		want := []int{1, 1, 1, 1}
		if !slices.Equal(heldByReads, want) || visits == 0 || held != 0 {
			t.Errorf("got %v turns while records were read, and %d at the end, with %d visits; want %v and none", heldByReads, held, visits, want)
		}
	})
}

func TestSent(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		team := newTeam(t, db.Open(t, store.Options{}), "a")
		for _, name := range []string{"example.com", "example.org", "gone.example"} {
			addDomain(t, team, name)
		}
		quarantined := storetest.Failed("example.com", 2)
		quarantined.Disposition, quarantined.SPF = aggregate.PolicyQuarantine, "pass"
		receive(t, team,
			storetest.Aggregate("1", "example.com", 100, storetest.Passed("example.com", 9)), // replaced by the next one
			storetest.Aggregate("1", "example.com", 100, storetest.Passed("example.com", 7), storetest.Failed("mail.example.com", 3)),
			storetest.Aggregate("2", "example.com", 101, quarantined),
			storetest.Aggregate("3", "example.org", 100, storetest.Passed("example.org", 1)),
			storetest.Aggregate("4", "unclaimed.example", 100, storetest.Passed("unclaimed.example", 1)),
			storetest.Aggregate("5", "gone.example", 100, storetest.Passed("gone.example", 1)),
			storetest.Aggregate("6", "example.com", 100),
		)
		musttest.Do(t, team.DeleteDomain(t.Context(), "gone.example"))
		first := []string{
			`1970-04-11 receiver.example example.com: 192.0.2.1 7 dkim=true spf=false none envelope="example.com"`,
			`1970-04-11 receiver.example mail.example.com: 198.51.100.7 3 dkim=false spf=false reject envelope="spoofed.example"`,
		}
		second := `1970-04-12 receiver.example example.com: 198.51.100.7 2 dkim=false spf=true quarantine envelope="spoofed.example"`
		other := `1970-04-11 receiver.example example.org: 192.0.2.1 1 dkim=true spf=false none envelope="example.org"`
		for _, test := range []struct {
			name, domain string
			days         dmarcd.Days
			want         []string
		}{
			{"one domain and the names below it", "example.com", dmarcd.Days{}, append(slices.Clone(first), second)},
			{"some days", "example.com", daysOf(101, 200), []string{second}},
			{"all domains", "", daysOf(100, 100), []string{first[0], other, first[1]}},
			{"a deleted domain", "gone.example", dmarcd.Days{}, nil},
			{"an unclaimed domain", "unclaimed.example", dmarcd.Days{}, nil},
			{"text that cannot be stored", "\x00", dmarcd.Days{}, nil},
		} {
			if diff := cmp.Diff(test.want, sentLines(t, team, test.domain, test.days)); diff != "" {
				t.Errorf("%s: -want +got\n%s", test.name, diff)
			}
		}
	})
}

func TestSentRecords(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		team := newTeam(t, db.Open(t, store.Options{}), "a")
		addDomain(t, team, "example.com")
		var records []aggregate.Record
		for n := range int64(70) {
			records = append(records, storetest.Failed("example.com", n+1))
		}
		receive(t, team, storetest.Aggregate("1", "example.com", 100, records...))
		positions, _, err := sentPositions(t.Context(), team)
		musttest.Do(t, err)
		slices.Reverse(positions)
		found, err := team.SentRecords(t.Context(), append([]dmarcd.SentPosition{{Report: 1}}, positions...))
		if err != nil || len(found) != len(records) {
			t.Fatalf("got %d records, %v; want %d", len(found), err, len(records))
		}
		for i, got := range found {
			want := records[len(records)-1-i]
			want.Addr = netip.Addr{} // not stored
			if diff := cmp.Diff(want, got.Record, cmpopts.EquateComparable(netip.Addr{})); diff != "" || got.Organization != "receiver.example" || got.Day != 100 {
				t.Fatalf("record %d of %s on %s: -want +got\n%s", i, got.Organization, got.Day, diff)
			}
		}
	})
}

// BenchmarkSent reads 10,000 records of one domain.
func BenchmarkSent(b *testing.B) {
	for _, db := range []func(testing.TB) storetest.DB{storetest.SQLite, storetest.Postgres} {
		db := db(b)
		b.Run(db.Engine, func(b *testing.B) {
			s := db.Open(b, store.Options{})
			created := storetest.Team(b, s, "a")
			team := s.Team(created.ID)
			addDomain(b, team, "example.com")
			for id := range 200 {
				receive(b, team, storetest.Aggregate(fmt.Sprint(id), "example.com", dmarcd.Day(id%30), benchRows(id)...))
			}
			b.ReportAllocs()
			for b.Loop() {
				shares := 0
				var block rollup.Block
				err := team.Scan(b.Context(), "example.com", dmarcd.Days{}, atOnce, func(part rollup.Part) error {
					err := block.Read(part)
					shares += len(block.Shares)
					return err
				})
				if err != nil || shares != 200 {
					b.Fatalf("got %d shares, %v", shares, err)
				}
			}
		})
	}
}
