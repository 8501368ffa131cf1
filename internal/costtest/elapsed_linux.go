package costtest

import (
	"time"

	"golang.org/x/sys/unix"
)

// elapsed returns the time that the thread has spent on a processor.
func elapsed() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		panic(err) // every thread has this clock
	}
	return time.Duration(now.Nano())
}
