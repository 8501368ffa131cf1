package fair

import (
	"os"
	"runtime"
)

// cores is what the runtime found before Oversubscribe.
var cores = runtime.GOMAXPROCS(0)

// Cores returns the number of processor cores that the program may use.
func Cores() int { return cores }

// HalfOfCores is a capacity for long work that leaves half of the cores to other work.
func HalfOfCores() int64 { return int64(max(1, cores/2)) }

// Oversubscribe lets twice as many goroutines run at once as there are cores, unless GOMAXPROCS
// is set in the environment. Long work then never occupies all threads of the Go scheduler, which
// would poll the network only every 10 ms; the kernel shares the cores among them, and lets a
// thread that was idle go first. See docs/performance.md.
func Oversubscribe() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(2 * cores)
	}
}
