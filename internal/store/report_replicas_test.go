package store_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// replicas returns views of the team from several processes.
func (in *inbox) replicas(n int) []*store.Team {
	in.Helper()
	teams := make([]*store.Team, n)
	for i := range teams {
		s := in.db.Open(in, store.Options{})
		found := musttest.Get(s.TeamByName(in.Context(), "a"))(in)
		teams[i] = s.Team(found.ID)
	}
	return teams
}

// together runs f concurrently for each team.
func together(teams []*store.Team, f func(i int, team *store.Team)) {
	var group sync.WaitGroup
	start := make(chan struct{})
	for i, team := range teams {
		group.Go(func() {
			<-start
			f(i, team)
		})
	}
	close(start)
	group.Wait()
}

func TestReplicasReceiveTheSame(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		teams := in.replicas(4)
		const reports, rounds = 10, 5
		var mu sync.Mutex
		became := map[dmarcd.ReceiptStatus]int{}
		for round := range rounds {
			together(teams, func(i int, team *store.Team) {
				var deliveries []*dmarcd.Delivery
				for n := range reports {
					deliveries = append(deliveries, storetest.Delivery(report(fmt.Sprint(round, n), ours, storetest.Passed(ours, 1))))
				}
				if i%2 == 1 { // every other one in reverse order
					slices.Reverse(deliveries)
				}
				receipts, err := team.Receive(in.Context(), deliveries)
				if err != nil {
					in.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				for _, receipt := range receipts {
					became[receipt[0].Status]++
				}
			})
		}
		if became[dmarcd.Stored] != rounds*reports || became[dmarcd.Duplicate] != 3*rounds*reports {
			in.Errorf("got %v; want each stored once", became)
		}
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(rounds * reports)})
	})
}

func TestReplicasReceiveVersions(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours, "other.example")
		teams := in.replicas(3)
		const rounds = 10
		for round := range rounds {
			together(teams, func(i int, team *store.Team) {
				from := []string{ours, "other.example", "strange.example"}[(i+round)%3]
				_, err := team.Receive(in.Context(), []*dmarcd.Delivery{
					storetest.Delivery(report(fmt.Sprint(round), "policy.example", storetest.Passed(from, int64(1+i)))),
				})
				if err != nil {
					in.Error(err)
				}
			})
		}
		in.sound()
		reports := musttest.Get(in.team.Reports(in.Context(), store.ReportFilter{}, 0, 1000))(in)
		counting := map[string]int{}
		for _, r := range reports {
			if r.State == dmarcd.ReportCounted {
				counting[r.ExternalID]++
			}
		}
		if len(reports) != rounds*len(teams) || len(counting) != rounds {
			in.Errorf("got %d versions of %d reports, want %d of %d", len(reports), len(counting), rounds*len(teams), rounds)
		}
		for id, n := range counting {
			if n != 1 {
				in.Errorf("%d versions of report %s count", n, id)
			}
		}
	})
}

// TestDomainsComeWhileReportsDo checks that no record of an added domain stays unclaimed.
func TestDomainsComeWhileReportsDo(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		teams := in.replicas(3)
		const rounds = 15
		want := make(map[string]dmarcd.Summary)
		for round := range rounds {
			name := fmt.Sprintf("d%d.example", round)
			together(teams, func(i int, team *store.Team) {
				var err error
				if i == 0 {
					_, err = team.AddDomain(in.Context(), name, time.Time{})
				} else {
					_, err = team.Receive(in.Context(), []*dmarcd.Delivery{
						storetest.Delivery(report(fmt.Sprint(round, i), name, storetest.Passed("www."+name, 1))),
					})
				}
				if err != nil {
					in.Error(err)
				}
			})
			want[name] = passed(2)
		}
		in.wantCounted(want)
		unclaimed := musttest.Get(in.team.Reports(in.Context(), store.ReportFilter{Unclaimed: true}, 0, 10))(in)
		if len(unclaimed) != 0 {
			in.Errorf("%d reports are unclaimed", len(unclaimed))
		}
	})
}

// TestDomainsGoWhileReportsDo deletes, purges and adds a domain while its reports arrive,
// are replaced and expire.
func TestDomainsGoWhileReportsDo(t *testing.T) {
	if testing.Short() {
		return
	}
	eachInbox(t, func(in *inbox) {
		in.add(ours, "kept.example")
		teams := in.replicas(2)
		purging := in.db.Open(in, store.Options{})
		const rounds = 15
		for round := range rounds {
			together(append(teams, nil, in.team), func(i int, team *store.Team) {
				var err error
				switch {
				case team == nil:
					if _, err = purging.Purge(in.Context()); err == nil {
						_, err = purging.Expire(in.Context(), store.Retention{Records: time.Hour, Counters: ofDays(2)})
					}
				case i == 3 && round%2 == 0:
					err = team.DeleteDomain(in.Context(), ours)
				case i == 3:
					_, err = team.AddDomain(in.Context(), ours, time.Time{})
				default:
					old := storetest.Aggregate(fmt.Sprint("old", i), ours, 100, storetest.Passed(ours, int64(1+round)))
					_, err = team.Receive(in.Context(), []*dmarcd.Delivery{
						storetest.Delivery(report(fmt.Sprint(round/4), ours, storetest.Passed(ours, int64(10*round+i)), storetest.Passed("kept.example", 1))),
						storetest.Delivery(report(fmt.Sprint(round, i), ours, storetest.Failed(ours, 1))),
						storetest.Delivery(old),
					})
				}
				if err != nil {
					in.Errorf("round %d, process %d: %v", round, i, err)
				}
			})
			in.sound()
		}
		in.purge()
	})
}

// TestDomainsAreAddedUnderLoad checks that adding a domain gets a turn while reports
// arrive without a pause.
func TestDomainsAreAddedUnderLoad(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		stop := make(chan struct{})
		var group sync.WaitGroup
		for i := range 3 {
			group.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					_, err := in.team.Receive(in.Context(), []*dmarcd.Delivery{
						storetest.Delivery(report(fmt.Sprint(i, n), ours, storetest.Passed(ours, 1))),
					})
					if err != nil {
						in.Error(err)
						return
					}
				}
			})
		}
		for i := range 10 {
			in.add(fmt.Sprintf("d%d.example", i))
		}
		close(stop)
		group.Wait()
		in.sound()
	})
}
