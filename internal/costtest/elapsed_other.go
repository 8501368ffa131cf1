//go:build !linux

package costtest

import "time"

// began is when the process began.
var began = time.Now()

// elapsed returns the time since the process began.
func elapsed() time.Duration { return time.Since(began) }

func processed() time.Duration { return elapsed() }
