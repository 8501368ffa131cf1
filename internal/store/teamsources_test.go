package store_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// sentLine writes a record for people.
func sentLine(s dmarcd.Sent) string {
	return fmt.Sprintf("%s %s %s: %s %d dkim=%t spf=%t %s envelope=%q", s.Share.Day, s.Share.Organization, s.Share.HeaderFrom,
		s.Source, s.Count, s.DKIM, s.SPF, s.Disposition, s.Identities.EnvelopeFrom)
}

func sentLines(t *testing.T, team *store.Team, name string, days dmarcd.Days) []string {
	t.Helper()
	var lines []string
	err := team.EachSent(t.Context(), name, days, 100, func(s dmarcd.Sent) error {
		lines = append(lines, sentLine(s))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return lines
}

func daysOf(from, to dmarcd.Day) dmarcd.Days { return dmarcd.Days{From: &from, To: &to} }

func receive(t testing.TB, team *store.Team, reports ...dmarcd.NewReport) {
	t.Helper()
	for _, r := range reports {
		if _, err := team.Receive(t.Context(), []*dmarcd.Delivery{storetest.Delivery(r)}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEachSent(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		team := newTeam(t, db.Open(t, store.Options{}), "a")
		for _, name := range []string{"example.com", "example.org", "gone.example"} {
			addDomain(t, team, name)
		}
		quarantined := storetest.Failed("example.com", 2)
		quarantined.Disposition, quarantined.SPF = aggregate.PolicyQuarantine, "pass"
		receive(t, team,
			storetest.Aggregate("1", "example.com", 100, storetest.Passed("example.com", 9)), // replaced by the next
			storetest.Aggregate("1", "example.com", 100, storetest.Passed("example.com", 7), storetest.Failed("mail.example.com", 3)),
			storetest.Aggregate("2", "example.com", 101, quarantined),
			storetest.Aggregate("3", "example.org", 100, storetest.Passed("example.org", 1)),
			storetest.Aggregate("4", "unclaimed.example", 100, storetest.Passed("unclaimed.example", 1)),
			storetest.Aggregate("5", "gone.example", 100, storetest.Passed("gone.example", 1)),
			storetest.Aggregate("6", "example.com", 100),
		)
		if err := team.DeleteDomain(t.Context(), "gone.example"); err != nil {
			t.Fatal(err)
		}
		first := []string{
			`1970-04-11 receiver.example example.com: 192.0.2.1 7 dkim=true spf=false none envelope="example.com"`,
			`1970-04-11 receiver.example mail.example.com: 198.51.100.7 3 dkim=false spf=false reject envelope=""`,
		}
		second := `1970-04-12 receiver.example example.com: 198.51.100.7 2 dkim=false spf=true quarantine envelope=""`
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

func TestEachSentEnds(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		team := newTeam(t, db.Open(t, store.Options{}), "a")
		addDomain(t, team, "example.com")
		records := []aggregate.Record{storetest.Passed("example.com", 1), storetest.Passed("example.com", 2), storetest.Passed("a.example.com", 3)}
		receive(t, team, storetest.Aggregate("1", "example.com", 100, records...))
		stop := errors.New("enough")
		for _, test := range []struct {
			name  string
			limit int
			visit error
			want  error
		}{
			{"as many as there may be", 3, nil, nil},
			{"one record too many", 2, nil, dmarcd.ErrLimit},
			{"one share too many", 1, nil, dmarcd.ErrLimit},
			{"the visitor has seen enough", 3, stop, stop},
		} {
			err := team.EachSent(t.Context(), "example.com", dmarcd.Days{}, test.limit, func(dmarcd.Sent) error { return test.visit })
			if !errors.Is(err, test.want) {
				t.Errorf("%s: got %v, want %v", test.name, err, test.want)
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
			records = append(records, storetest.Failed("example.com", n))
		}
		receive(t, team, storetest.Aggregate("1", "example.com", 100, records...))
		var places []dmarcd.SentPlace
		err := team.EachSent(t.Context(), "", dmarcd.Days{}, 100, func(s dmarcd.Sent) error {
			places = append(places, dmarcd.SentPlace{Report: s.Share.Report, Share: s.Share.N, N: s.N})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(places, func(a, b dmarcd.SentPlace) int { return b.N - a.N })
		found, err := team.SentRecords(t.Context(), append([]dmarcd.SentPlace{{Report: 1}}, places...))
		if err != nil || len(found) != len(records) {
			t.Fatalf("got %d records, %v; want %d", len(found), err, len(records))
		}
		for i, got := range found {
			want := records[len(records)-1-i]
			want.Addr = netip.Addr{} // not kept
			if diff := cmp.Diff(want, got.Record, cmpopts.EquateComparable(netip.Addr{})); diff != "" || got.Organization != "receiver.example" || got.Day != 100 {
				t.Fatalf("record %d of %s on %s: -want +got\n%s", i, got.Organization, got.Day, diff)
			}
		}
	})
}

// BenchmarkEachSent reads 10,000 records of one domain.
func BenchmarkEachSent(b *testing.B) {
	s := storetest.SQLite(b).Open(b, store.Options{})
	created, err := s.CreateTeam(b.Context(), "a", true)
	if err != nil {
		b.Fatal(err)
	}
	team := s.Team(created.ID)
	addDomain(b, team, "example.com")
	for id := range 200 {
		receive(b, team, storetest.Aggregate(fmt.Sprint(id), "example.com", dmarcd.Day(id%30), benchRows(id)...))
	}
	b.ReportAllocs()
	for b.Loop() {
		read := 0
		err := team.EachSent(b.Context(), "example.com", dmarcd.Days{}, 300_000, func(dmarcd.Sent) error {
			read++
			return nil
		})
		if err != nil || read != 200*benchRecords {
			b.Fatalf("got %d records, %v", read, err)
		}
	}
}
