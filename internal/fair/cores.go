package fair

import (
	"os"
	"runtime"
)

// cores is GOMAXPROCS as it was before Oversubscribe.
var cores = runtime.GOMAXPROCS(0)

// Cores returns the number of processor cores that the process may use.
func Cores() int { return cores }

// HalfCores returns half the number of cores, at least 1: the capacity of a Limiter for long
// work that must leave cores to other work.
func HalfCores() int64 { return int64(max(1, cores/2)) }

// Oversubscribe sets GOMAXPROCS to twice the number of cores, unless it is set in the
// environment. While long work occupies every P, the Go scheduler polls the network only every
// 10 ms; with twice as many it never does. The kernel shares the cores among the threads and
// prefers those that were idle. See docs/performance.md.
func Oversubscribe() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(2 * cores)
	}
}
