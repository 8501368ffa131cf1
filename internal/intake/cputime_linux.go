package intake

import (
	"runtime"
	"syscall"
	"time"
)

// rusageThread is RUSAGE_THREAD of getrusage(2), missing from package syscall.
const rusageThread = 1

// startCPUTimer locks the calling goroutine to its thread until stop is called. used returns
// the CPU time of that thread since, without waiting.
func startCPUTimer() (used func() time.Duration, stop func()) {
	runtime.LockOSThread()
	began := threadTime()
	return func() time.Duration { return threadTime() - began }, runtime.UnlockOSThread
}

func threadTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(rusageThread, &usage) // cannot fail with these arguments
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
