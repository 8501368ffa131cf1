package fair_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dmarcd/dmarcd/internal/fair"
)

// lane is a key with two groups.
type lane struct{ team, network int }

func newLanes(capacity, perTeam, perNetwork int64) *fair.Queue[lane, string] {
	return fair.NewQueue[lane, string](fair.Options{Capacity: capacity},
		fair.Group[lane]{Of: func(l lane) lane { return lane{team: l.team} }, Max: perTeam},
		fair.Group[lane]{Of: func(l lane) lane { return lane{network: l.network} }, Max: perNetwork})
}

// started returns the items that a queue starts, in order.
func started(q *fair.Queue[lane, string]) (items []string) {
	for {
		_, item, ok := q.Next()
		if !ok {
			return items
		}
		items = append(items, item)
	}
}

func TestGroupsAreLimited(t *testing.T) {
	t.Parallel()
	q := newLanes(10, 2, 3)
	for i := range 3 {
		q.Push(lane{1, 1}, fmt.Sprint("a", i))
		q.Push(lane{2, 1}, fmt.Sprint("b", i))
		q.Push(lane{1, 2}, fmt.Sprint("c", i))
	}
	if got, want := started(q), []string{"a0", "b0", "c0", "b1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	q.End(lane{1, 1})
	if got, want := started(q), []string{"c1"}; !slices.Equal(got, want) {
		t.Errorf("after one of the first team: got %q, want %q", got, want)
	}
}

// TestTheGroupTakesTurns has one team with many keys and another with one: both get every second turn.
func TestTheGroupTakesTurns(t *testing.T) {
	t.Parallel()
	q := newLanes(1, 1, 1)
	for network := range 5 {
		q.Push(lane{1, network}, fmt.Sprint("many", network))
	}
	for i := range 3 {
		q.Push(lane{2, 9}, fmt.Sprint("one", i))
	}
	var order []string
	for {
		key, item, ok := q.Next()
		if !ok {
			break
		}
		order = append(order, item)
		q.End(key)
	}
	want := []string{"many0", "one0", "many1", "one1", "many2", "one2", "many3", "many4"}
	if !slices.Equal(order, want) || q.Keys() != 0 {
		t.Errorf("got %q and %d keys, want %q and none", order, q.Keys(), want)
	}
}

// TestTheLastUnitsAreForOthers has keys that never end. A key that comes later finds a unit.
func TestTheLastUnitsAreForOthers(t *testing.T) {
	t.Parallel()
	for _, keys := range []int{1, 4, 12, 50} {
		q := fair.NewQueue[lane, string](fair.Options{Capacity: 64, PerKey: 16, Last: 8})
		for range 100 {
			for key := range keys {
				q.Push(lane{team: key}, "hangs")
			}
		}
		if got := len(started(q)); got < min(16*keys, 50) {
			t.Errorf("%d keys: got %d items started, want most units used", keys, got)
		}
		q.Push(lane{team: keys}, "late")
		if got, want := started(q), []string{"late"}; !slices.Equal(got, want) {
			t.Errorf("%d keys: got %q, want %q", keys, got, want)
		}
	}
}

func TestItemsAreGivenBack(t *testing.T) {
	t.Parallel()
	q := newLanes(1, 1, 1)
	for i := range 4 {
		q.Push(lane{1, 1}, fmt.Sprint(i))
	}
	key, first, _ := q.Next()
	batch := []string{first}
	for q.More(key, func(item string) bool { return item < "3" && len(batch) < 3 }) {
		batch = append(batch, fmt.Sprint(len(batch)))
	}
	q.GiveBack(key, batch[1:]...)
	q.End(key)
	var rest []string
	for range 3 {
		key, item, _ := q.Next()
		rest = append(rest, item)
		q.End(key)
	}
	if len(batch) != 3 || !slices.Equal(rest, []string{"1", "2", "3"}) || q.Len() != 0 {
		t.Errorf("got %q, then %q, and %d left", batch, rest, q.Len())
	}
}
