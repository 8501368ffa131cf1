package intake

import (
	"runtime"
	"syscall"
	"time"
)

// rusageThread is RUSAGE_THREAD of getrusage(2), which package syscall lacks.
const rusageThread = 1

// startCPUTimer returns a function that returns how long the calling goroutine has
// computed since; waiting, also for a busy machine, does not count. The goroutine is
// bound to its thread until stop is called.
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
