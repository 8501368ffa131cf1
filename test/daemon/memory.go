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

// sampleInterval is the interval between memory samples.
const sampleInterval = 20 * time.Millisecond

// Meter samples the resident memory of a process and its children from /proc. Without
// /proc it reads 0. It is safe for concurrent use.
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

// resident returns the resident bytes of a process and its descendants.
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
