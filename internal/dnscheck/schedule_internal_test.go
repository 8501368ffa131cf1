package dnscheck

import (
	"fmt"
	"testing"
	"time"
)

func TestChecksAreSpread(t *testing.T) {
	t.Parallel()
	const interval = time.Hour
	var minutes [60]int
	start := time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)
	for i := range 60_000 {
		name := fmt.Sprintf("d%d.example", i)
		now := start.Add(time.Duration(i) * time.Millisecond)
		first := nextCheck(name, now, interval)
		if wait := first.Sub(now); wait < interval/2 || wait > interval*3/2 {
			t.Fatalf("%s waits %v", name, wait)
		}
		// An early, late or intermediate check does not move the next one.
		if second := nextCheck(name, first.Add(time.Minute), interval); second.Sub(first) != interval {
			t.Fatalf("%s has its second check %v after the first", name, second.Sub(first))
		}
		minutes[first.Minute()]++
	}
	for minute, n := range minutes {
		if n < 850 || n > 1150 {
			t.Errorf("%d of 60,000 domains are checked in minute %d, want about 1,000", n, minute)
		}
	}
}
