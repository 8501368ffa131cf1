//go:build !linux

package intake

import "time"

// startCPUTimer measures wall time: other systems do not report CPU time per thread.
func startCPUTimer() (used func() time.Duration, stop func()) {
	began := time.Now()
	return func() time.Duration { return time.Since(began) }, func() {}
}
