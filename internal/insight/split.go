package insight

import (
	"runtime"
	"sync"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/recovered"
)

// splitAbove is how many records are looked at by several. To begin and to gather takes
// some microseconds, as do thousands of records.
const splitAbove = 50_000

// split has n things worked on by as many workers as there are processors, each with
// the things from one place up to another; by one where amount, which says how many
// records they are worth, is small.
func split(n, amount int, work func(from, to int)) {
	workers := min(runtime.GOMAXPROCS(0), n)
	if amount < splitAbove {
		workers = 1
	}
	var group recovered.Group
	for worker := range workers {
		group.Go(func() { work(n*worker/workers, n*(worker+1)/workers) })
	}
	group.Wait()
}

// maxCopied is how many sums each worker has a copy of. With more of them one worker does
// it all, to save memory.
const maxCopied = 100_000

// gather adds something up over all records, a share at a time. Each worker has a list
// of sums of its own, and add puts them together.
func gather[T any](m *Mail, sums int, work func(own []T, share int, records []dmarcd.Sent), add func(sum, own *T)) []T {
	var all []T
	var mu sync.Mutex
	first := true
	amount := m.total
	if sums > maxCopied {
		amount = 0 // by one
	}
	split(len(m.sent.Shares), amount, func(from, to int) {
		own := make([]T, sums)
		for i := from; i < to; i++ {
			work(own, i, m.sent.Shares[i].Records)
		}
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
