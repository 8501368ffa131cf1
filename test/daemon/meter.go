package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// sampleInterval is the interval between memory samples.
const sampleInterval = 20 * time.Millisecond

// Meter samples the resident memory of a process from /proc; the daemon starts no others.
// Without /proc it reads 0. It is safe for concurrent use.
type Meter struct {
	now    atomic.Int64
	peak   atomic.Int64
	killed atomic.Bool
	done   chan struct{}
}

// meter samples until the process ends, and kills it above net bytes.
func meter(pid int, net int64, ended <-chan struct{}) *Meter {
	m := &Meter{done: make(chan struct{})}
	go func() {
		defer close(m.done)
		ticker := time.NewTicker(sampleInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
			}
			used := resident(pid)
			m.now.Store(used)
			m.peak.Store(max(m.peak.Load(), used))
			if used > net {
				m.killed.Store(true)
				_ = syscall.Kill(pid, syscall.SIGKILL) // may have ended already
			}
		}
	}()
	return m
}

// Peak returns the most bytes since the start, or since the latest Reset.
func (m *Meter) Peak() int64 { return m.peak.Load() }

// Reset forgets the peak.
func (m *Meter) Reset() { m.peak.Store(m.now.Load()) }

// Killed reports whether the process exceeded its memory limit and was killed.
func (m *Meter) Killed() bool { return m.killed.Load() }

// resident returns the resident bytes of a process.
func resident(pid int) int64 {
	statm, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "statm"))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(statm))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64) // the kernel writes numbers
	return pages * int64(os.Getpagesize())
}

// CPU returns the CPU time of the process.
func (d *Daemon) CPU() time.Duration {
	d.t.Helper()
	used, err := ProcessorTime(d.PID())
	if err != nil {
		d.t.Fatal(err)
	}
	return used
}

// ProcessorTime returns the CPU time of a process, from /proc.
func ProcessorTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the program name may contain spaces
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("got %s, want the line that proc(5) describes", stat)
	}
	var ticks int64
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	const perSecond = 100 // USER_HZ
	return time.Duration(ticks) * time.Second / perSecond, nil
}
