package insight

import (
	"runtime"
	"sync"
)

// splitAbove is how much work is split. To begin and to gather takes some
// microseconds, as do thousands of records.
const splitAbove = 50_000

// split has n things worked on by as many workers as there are processors, each with
// the things from one place up to another; by one where amount, which says how much
// work they are, is small.
func split(n, amount int, work func(from, to int)) {
	workers := min(runtime.GOMAXPROCS(0), n)
	if amount < splitAbove {
		workers = 1
	}
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() { work(n*worker/workers, n*(worker+1)/workers) })
	}
	group.Wait()
}

// gather is split for work that adds something up: each worker has a list of sums of
// its own, and add puts them together.
func gather[T any](n, amount, sums int, work func(own []T, from, to int), add func(sum, own *T)) []T {
	all := make([]T, sums)
	var mu sync.Mutex
	first := true
	split(n, amount, func(from, to int) {
		own := make([]T, sums)
		work(own, from, to)
		mu.Lock()
		defer mu.Unlock()
		if first {
			all, first = own, false
			return
		}
		for i := range own {
			add(&all[i], &own[i])
		}
	})
	return all
}
