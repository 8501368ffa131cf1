package main

import (
	"runtime"
	"syscall"
)

// lowestPriority gives the calling goroutine a thread of the lowest priority for the rest
// of its life: attackers stand for other machines, and must not take the processors from
// the daemon.
func lowestPriority() {
	runtime.LockOSThread() // a thread that is never unlocked ends with its goroutine
	const lowest = 19
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, syscall.Gettid(), lowest) // lowering is always allowed
}
