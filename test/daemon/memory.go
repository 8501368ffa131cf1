package daemon

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// sampleInterval is how often the memory of a daemon is read.
const sampleInterval = 20 * time.Millisecond

// Meter samples the resident memory of a process together with its children,
// from /proc. Where there is no /proc it reads 0. It is safe for concurrent
// use.
type Meter struct {
	pid    int
	now    atomic.Int64
	peak   atomic.Int64
	killed atomic.Bool
	done   chan struct{}
}

// meter samples until the process has ended, and kills it when it has more than
// net bytes.
func meter(pid int, net int64, ended <-chan struct{}) *Meter {
	m := &Meter{pid: pid, done: make(chan struct{})}
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
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone
			}
		}
	}()
	return m
}

// Now returns the bytes of the latest sample.
func (m *Meter) Now() int64 { return m.now.Load() }

// Peak returns the most bytes since the start, or since the latest Reset.
func (m *Meter) Peak() int64 { return m.peak.Load() }

// Reset forgets the peak.
func (m *Meter) Reset() { m.peak.Store(m.now.Load()) }

// Killed reports whether the process was killed because of its memory.
func (m *Meter) Killed() bool { return m.killed.Load() }

// CPU returns the processor time that the process has used.
func (m *Meter) CPU() time.Duration {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(m.pid), "stat"))
	if err != nil {
		return 0
	}
	// The name of the program, in parentheses, may hold blanks.
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)   // proc(5): utime
	system, _ := strconv.ParseInt(fields[12], 10, 64) // proc(5): stime
	const ticksPerSecond = 100                        // USER_HZ on every architecture that Go runs on
	return time.Duration(user+system) * time.Second / ticksPerSecond
}

// resident returns the resident bytes of a process and of all below it.
func resident(pid int) int64 {
	folder := filepath.Join("/proc", strconv.Itoa(pid))
	statm, err := os.ReadFile(filepath.Join(folder, "statm"))
	if err != nil {
		return 0
	}
	var sum int64
	if fields := strings.Fields(string(statm)); len(fields) > 1 {
		pages, _ := strconv.ParseInt(fields[1], 10, 64) // the kernel writes numbers
		sum = pages * int64(os.Getpagesize())
	}
	lists, _ := filepath.Glob(filepath.Join(folder, "task", "*", "children")) // the pattern is valid
	for _, list := range lists {
		children, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for _, child := range strings.Fields(string(children)) {
			if number, err := strconv.Atoi(child); err == nil {
				sum += resident(number)
			}
		}
	}
	return sum
}
