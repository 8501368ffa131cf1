//go:build !linux

package intake

import "time"

// startCPUTimer returns a function that returns how long it has been since: other
// systems do not tell the time that one thread has computed.
func startCPUTimer() (used func() time.Duration, stop func()) {
	began := time.Now()
	return func() time.Duration { return time.Since(began) }, func() {}
}
