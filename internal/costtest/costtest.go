// Package costtest compares the cost of two pieces of work, for tests that the cost of hostile
// input grows no faster than its length. It compares processor time, where the system reports
// it, and the minimum of several attempts, so that other load does not matter.
package costtest

import (
	"math"
	"runtime"
	"testing"
	"time"
)

const (
	// attempts is the maximum number of measurements of each piece of work. The first is
	// usually enough; the others are for busy machines.
	attempts = 12
	// least is the shortest comparable time: below it, clock resolution and garbage collection
	// dominate.
	least = 200 * time.Microsecond
)

// AtMost fails the test if large takes more than factor times as long as small. Both
// are called several times. It must not be called by parallel tests. With -short it measures nothing.
func AtMost(t testing.TB, factor float64, small, large func()) {
	t.Helper()
	if testing.Short() {
		return
	}
	shortest, longest := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for range attempts {
		shortest = min(shortest, measure(small))
		longest = min(longest, measure(large))
		if float64(longest) <= factor*float64(max(shortest, least)) {
			return
		}
	}
	t.Errorf("got %v against %v, a factor of %.1f, want at most %.1f", longest, shortest, float64(longest)/float64(shortest), factor)
}

// measure returns how long work takes.
func measure(work func()) time.Duration {
	runtime.LockOSThread() // whose time is measured
	defer runtime.UnlockOSThread()
	start := elapsed()
	work()
	return elapsed() - start
}

// Within fails the test if work takes longer than limit: in processor time of all processors,
// where the system reports it, so that other load does not matter. It must not be called by
// parallel tests.
func Within(t testing.TB, limit time.Duration, work func()) {
	t.Helper()
	start := processed()
	work()
	if took := processed() - start; took > limit {
		t.Errorf("took %v on the processors, want at most %v", took, limit)
	}
}
