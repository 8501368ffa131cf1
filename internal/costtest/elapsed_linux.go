package costtest

import (
	"time"

	"golang.org/x/sys/unix"
)

// elapsed returns the time that the thread has spent on a processor.
func elapsed() time.Duration { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }

// processed returns the time that the process has spent on processors.
func processed() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func clock(id int32) time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(id, &now); err != nil {
		panic(err) // every thread and process has its clock
	}
	return time.Duration(now.Nano())
}
