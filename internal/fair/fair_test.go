package fair_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/fair"
)

// hold acquires units. It may be called from any goroutine.
func hold(t *testing.T, l *fair.Limiter[string], key string, weight int64) (release func()) {
	t.Helper()
	release, err := l.Acquire(t.Context(), key, weight)
	if err != nil {
		t.Errorf("acquire %d for %s: %v", weight, key, err)
		return func() {}
	}
	return release
}

func TestTheKeyThatHoldsLeastGoesFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := fair.New[string](fair.Options{Capacity: 2})
		first, second := hold(t, l, "busy", 1), hold(t, l, "busy", 1)
		var mu sync.Mutex
		var order []string
		wait := func(key string) {
			go func() {
				release := hold(t, l, key, 1)
				mu.Lock()
				order = append(order, key)
				mu.Unlock()
				time.Sleep(time.Minute)
				release()
			}()
			synctest.Wait()
		}
		wait("busy")
		wait("busy")
		wait("quiet")
		first()
		synctest.Wait()
		second()
		time.Sleep(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"quiet", "busy", "busy"}; !slices.Equal(order, want) {
			t.Errorf("got the order %v, want %v", order, want)
		}
	})
}

func TestOneKeyLeavesUnitsToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := fair.New[string](fair.Options{Capacity: 4, PerKey: 3})
		for range 3 {
			defer hold(t, l, "busy", 1)()
		}
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error)
		go func() {
			_, err := l.Acquire(ctx, "busy", 1)
			stopped <- err
		}()
		synctest.Wait() // the fourth waits, although a unit is free
		defer hold(t, l, "quiet", 1)()
		cancel()
		if err := <-stopped; !errors.Is(err, context.Canceled) {
			t.Errorf("the fourth of one key: got %v, want context.Canceled", err)
		}
	})
}

// TestAQuietKeyGoesBeforeManyBusyOnes keeps a limiter busy with 50 keys. With a half-life a
// quiet key is next; without one it waits for all of them.
func TestAQuietKeyGoesBeforeManyBusyOnes(t *testing.T) {
	t.Parallel()
	for halfLife, want := range map[time.Duration]int{0: 50, time.Minute: 1} {
		synctest.Test(t, func(t *testing.T) {
			l := fair.New[string](fair.Options{Capacity: 1, HalfLife: halfLife})
			ctx, cancel := context.WithCancel(t.Context())
			var served atomic.Int64
			var busy sync.WaitGroup
			for i := range 50 {
				busy.Go(func() {
					for {
						release, err := l.Acquire(ctx, fmt.Sprint("busy", i), 1)
						if err != nil {
							return
						}
						time.Sleep(time.Second)
						served.Add(1)
						release()
					}
				})
			}
			time.Sleep(200*time.Second + time.Millisecond)
			before := served.Load()
			release := hold(t, l, "quiet", 1)
			if got := int(served.Load() - before); got != want {
				t.Errorf("half-life %v: got %d busy keys before the quiet one, want %d", halfLife, got, want)
			}
			release()
			cancel()
			busy.Wait()
		})
	}
}

// TestUseIsForgotten checks that use long ago no longer counts against a key.
func TestUseIsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := fair.New[string](fair.Options{Capacity: 1, HalfLife: time.Second})
		release := hold(t, l, "once busy", 1)
		time.Sleep(time.Minute)
		release()
		time.Sleep(time.Hour)
		release = hold(t, l, "other", 1)
		order := make(chan string, 2)
		for _, key := range []string{"once busy", "quiet"} {
			go func() {
				release := hold(t, l, key, 1)
				order <- key
				release()
			}()
			synctest.Wait()
		}
		release()
		if first := <-order; first != "once busy" {
			t.Errorf("got %s first, want the one that has waited longest", first)
		}
		<-order
	})
}

func TestALargeWeightIsNotOvertakenForever(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := fair.New[string](fair.Options{Capacity: 10})
		small := hold(t, l, "a", 1)
		admitted := make(chan func(), 2)
		go func() { admitted <- hold(t, l, "large", 100) }()
		synctest.Wait()
		go func() { admitted <- hold(t, l, "b", 1) }()
		synctest.Wait()
		if len(admitted) != 0 {
			t.Fatal("a later, smaller weight was admitted before the large one")
		}
		small()
		(<-admitted)()
		(<-admitted)()
	})
}

func TestWaitersOfAKeyAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := fair.New[string](fair.Options{Capacity: 1, Waiting: 1})
		release := hold(t, l, "a", 1)
		done := make(chan struct{})
		go func() {
			hold(t, l, "a", 1)()
			close(done)
		}()
		synctest.Wait()
		if _, err := l.Acquire(t.Context(), "a", 1); !errors.Is(err, dmarcd.ErrTemporary) {
			t.Errorf("got %v, want ErrTemporary", err)
		}
		release()
		release() // has no effect
		<-done
	})
}

func TestAnEndedContextIsNotAdmitted(t *testing.T) {
	t.Parallel()
	l := fair.New[string](fair.Options{Capacity: 1})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Acquire(ctx, "a", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	hold(t, l, "b", 1)()
}

// TestAWeightIsAtLeastOne releases two holders of a weight of 0: the first must not forget the
// key of the second.
func TestAWeightIsAtLeastOne(t *testing.T) {
	t.Parallel()
	l := fair.New[string](fair.Options{Capacity: 2})
	first, second := hold(t, l, "a", 0), hold(t, l, "a", 0)
	first()
	second()
}

// TestTheBoundsHold acquires, cancels and releases at random for several keys.
func TestTheBoundsHold(t *testing.T) {
	t.Parallel()
	const capacity, perKey, keys = 7, 4, 5
	l := fair.New[int](fair.Options{Capacity: capacity, PerKey: perKey})
	var all atomic.Int64
	var each [keys]atomic.Int64
	var group sync.WaitGroup
	for worker := range 20 {
		random := rand.New(rand.NewPCG(1, uint64(worker)))
		group.Go(func() {
			for range 300 {
				key, weight := random.IntN(keys), random.Int64N(perKey)+1
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(2000))*time.Microsecond)
				release, err := l.Acquire(ctx, key, weight)
				cancel()
				if err != nil {
					continue
				}
				if held := all.Add(weight); held > capacity {
					t.Errorf("got %d held units, want at most %d", held, capacity)
				}
				if held := each[key].Add(weight); held > perKey {
					t.Errorf("got %d held units of one key, want at most %d", held, perKey)
				}
				each[key].Add(-weight)
				all.Add(-weight)
				release()
			}
		})
	}
	group.Wait()
	// All units are free again; a leaked one would block here.
	for key, weight := range []int64{perKey, capacity - perKey} {
		release, err := l.Acquire(t.Context(), key, weight)
		if err != nil {
			t.Fatalf("acquire after everything was released: %v", err)
		}
		defer release()
	}
}

// TestKeysTakeTurns checks that keys alternate even with a capacity of 1: a key with many
// early waiters does not go first with all of them.
func TestKeysTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := fair.New[string](fair.Options{Capacity: 1})
		first := hold(t, l, "busy", 1)
		var mu sync.Mutex
		var order []string
		wait := func(key string) {
			go func() {
				release := hold(t, l, key, 1)
				mu.Lock()
				order = append(order, key)
				mu.Unlock()
				release()
			}()
			synctest.Wait()
		}
		for range 5 {
			wait("busy")
		}
		wait("a")
		wait("b")
		wait("a")
		first()
		synctest.Wait()
		want := []string{"busy", "a", "b", "busy", "a", "busy", "busy", "busy"}
		if !slices.Equal(order, want) {
			t.Errorf("got %q, want %q", order, want)
		}
	})
}

// TestAKeyAloneHoldsSpareUnits has another key come: the only regular unit is shared by both.
func TestAKeyAloneHoldsSpareUnits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := fair.New[string](fair.Options{Capacity: 1, Spare: 1})
		first, second := hold(t, l, "alone", 1), hold(t, l, "alone", 1)
		admitted := make(chan func())
		go func() { admitted <- hold(t, l, "other", 1) }()
		synctest.Wait()
		second()
		synctest.Wait() // the other key waits for the only regular unit
		select {
		case <-admitted:
			t.Error("got a spare unit beside another key")
		default:
		}
		first()
		(<-admitted)()
		defer hold(t, l, "alone", 1)()
		defer hold(t, l, "alone", 1)()
	})
}

func TestTryRejects(t *testing.T) {
	t.Parallel()
	l := fair.New[string](fair.Options{PerKey: 2})
	try := func(key string, want bool) (release func()) {
		t.Helper()
		release, ok := l.Try(key)
		if ok != want {
			t.Fatalf("try %s: got %t, want %t", key, ok, want)
		}
		return release
	}
	release := try("a", true)
	try("a", true)
	try("a", false)
	try("b", true)
	release()
	try("a", true)
	try("a", false)
}

func BenchmarkAcquire(b *testing.B) {
	for _, keys := range []int{1, 100} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			l := fair.New[int](fair.Options{Capacity: 1 << 20})
			for key := range keys {
				_, _ = l.Acquire(b.Context(), key, 1)
			}
			for b.Loop() {
				release, _ := l.Acquire(b.Context(), 0, 1)
				release()
			}
		})
	}
}

// TestBucketsAreBounded uses more keys than are remembered. Those whose bucket is full again are
// forgotten first, then all.
func TestBucketsAreBounded(t *testing.T) {
	t.Parallel()
	const most = 10_000
	var b fair.Buckets[int]
	now := time.Now()
	if _, ok := b.Tokens(-1, now); ok {
		t.Error("got tokens of a key that was never used")
	}
	use := func(key int) { b.Of(key, rate.Every(time.Hour), 2, now).AllowN(now, 1) }
	want := func(when string, key int, known bool) {
		t.Helper()
		if left, ok := b.Tokens(key, now); ok != known || ok && left > 1.1 {
			t.Errorf("%s: got %v tokens of key %d, known: %t, want %t", when, left, key, ok, known)
		}
	}
	for key := range most - 1 {
		use(key)
	}
	now = now.Add(time.Hour)
	use(most)
	use(most + 1)
	want("the first ones are full", 0, false)
	want("the first ones are full", most, true)
	for key := range most {
		use(key)
	}
	want("none is full", most, false)
	want("none is full", most-1, true)
}
