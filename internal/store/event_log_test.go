package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// checkWithPolicy returns a check that a user asked for, with that policy.
func checkWithPolicy(policy string) facts.Check {
	check := found(policy)
	check.At, check.Asked = time.Now(), true
	return check
}

// TestEventsAreInTheOrderOfCommits has several processes save checks while a client polls:
// it must see every event once, in order.
func TestEventsAreInTheOrderOfCommits(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	const processes, rounds = 4, 15
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		first := newTeam(t, db.Open(t, store.Options{}), "a")
		var names []string
		for i := range processes {
			names = append(names, fmt.Sprintf("d%d.example", i))
			addDomain(t, first, names[i])
		}
		save := func(team *store.Team, name, policy string) {
			if _, err := team.SaveCheck(t.Context(), name, checkWithPolicy(policy), dmarcd.Plan{}); err != nil {
				t.Error(err)
			}
		}
		for _, name := range names {
			save(first, name, "none")
		}
		var group sync.WaitGroup
		for _, name := range names {
			team := db.Open(t, store.Options{}).Team(first.ID())
			group.Go(func() {
				for round := range rounds {
					save(team, name, []string{"reject", "none"}[round%2])
				}
			})
		}
		done := make(chan struct{})
		go func() { group.Wait(); close(done) }()
		var got []int64
		for last := false; !last; {
			select {
			case <-done:
				last = true // and one more query
			default:
			}
			since := int64(len(got))
			events := musttest.Get(first.EventsSince(t.Context(), store.EventFilter{}, since, 1000))(t)
			for _, e := range events {
				got = append(got, e.Seq)
			}
			if !slices.Equal(got, upTo(len(got))) {
				t.Fatalf("the client saw the numbers %v", got)
			}
		}
		if want := processes * rounds * 2; len(got) != want { // the record and the policy each time
			t.Errorf("got %d events, want %d", len(got), want)
		}
		if last, err := first.LastEvent(t.Context()); err != nil || last != int64(len(got)) {
			t.Errorf("last event: %d, %v; want %d", last, err, len(got))
		}
	})
}

// upTo returns the numbers from 1 to n.
func upTo(n int) []int64 {
	numbers := make([]int64, n)
	for i := range numbers {
		numbers[i] = int64(i + 1)
	}
	return numbers
}

// TestSlowTransactionIsNotSkipped stops a transaction after it got its numbers: the events of a
// later one must not be visible before its own.
func TestSlowTransactionIsNotSkipped(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		reader := newTeam(t, db.Open(t, store.Options{}), "a")
		for _, name := range []string{"slow.example", "quick.example"} {
			addDomain(t, reader, name)
			musttest.Get(reader.SaveCheck(t.Context(), name, checkWithPolicy("none"), dmarcd.Plan{}))(t)
		}
		numbered, goOn := make(chan struct{}), make(chan struct{})
		slow := db.Open(t, store.Options{Statement: func(query string) {
			if strings.HasPrefix(query, `INSERT INTO events `) {
				close(numbered)
				<-goOn
			}
		}}).Team(reader.ID())
		quick := db.Open(t, store.Options{}).Team(reader.ID())
		var group sync.WaitGroup
		save := func(team *store.Team, name string) {
			if _, err := team.SaveCheck(context.WithoutCancel(t.Context()), name, checkWithPolicy("reject"), dmarcd.Plan{}); err != nil {
				t.Error(err)
			}
		}
		group.Go(func() { save(slow, "slow.example") })
		<-numbered
		began := make(chan struct{})
		group.Go(func() { close(began); save(quick, "quick.example") })
		<-began
		for range 20 { // time for the quick one to be wrong
			events, err := reader.EventsSince(t.Context(), store.EventFilter{}, 0, 10)
			if err != nil || len(events) > 0 {
				t.Errorf("while the first transaction is open: %v, %v; want none", events, err)
				break
			}
		}
		close(goOn)
		group.Wait()
		events := musttest.Get(reader.EventsSince(t.Context(), store.EventFilter{}, 0, 10))(t)
		var got []string
		for _, e := range events {
			got = append(got, fmt.Sprint(e.Seq, " ", e.Domain, " ", e.Kind))
		}
		want := []string{
			"1 slow.example record.changed", "2 slow.example policy.strengthened",
			"3 quick.example record.changed", "4 quick.example policy.strengthened",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestEventIsAnnounced(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		team, other := newTeam(t, s, "a"), newTeam(t, s, "b")
		addDomain(t, team, "example.com")
		added, elsewhere := team.EventAdded(), other.EventAdded()
		for _, policy := range []string{"none", "reject"} { // the first check adds no events
			musttest.Get(team.SaveCheck(t.Context(), "example.com", checkWithPolicy(policy), dmarcd.Plan{}))(t)
		}
		select {
		case <-added:
		default:
			t.Error("an event was committed and not announced")
		}
		select {
		case <-elsewhere:
			t.Error("an event was announced to another team")
		default:
		}
	})
}
