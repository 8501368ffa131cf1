package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// manyRecords is the number of records in the long report.
const manyRecords = 120_000

// longReport returns a compressed report with many records, each from another source.
// Uncompressed, it exceeds the limit for files.
func longReport(t *testing.T) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := musttest.Get(gzip.NewWriterLevel(&packed, gzip.BestSpeed))(t)
	before, after, _ := strings.Cut(reportOf("receiver.example", "\n"), "\n")
	write := func(text string) {
		musttest.Get(io.WriteString(w, text))(t)
	}
	write(before)
	for i := range manyRecords {
		write(recordFrom(fmt.Sprintf("2001:db8::%x:%x", i>>16, i&0xffff)))
	}
	write(after)
	musttest.Do(t, w.Close())
	return packed.Bytes()
}

// heapWatcher measures memory use while a program reads from and writes to it.
type heapWatcher struct {
	in    io.Reader
	lines int // written
	moved int // bytes since the last measurement
	peak  uint64
}

func (h *heapWatcher) Read(p []byte) (int, error) {
	const weight = 16 // what is read is compressed
	n, err := h.in.Read(p)
	h.look(weight * n)
	return n, err
}

func (h *heapWatcher) Write(p []byte) (int, error) {
	h.lines += bytes.Count(p, []byte("\n"))
	h.look(len(p))
	return len(p), nil
}

// look measures memory periodically.
func (h *heapWatcher) look(bytes int) {
	const interval = 8 << 20
	if h.moved += bytes; h.moved >= interval {
		h.moved = 0
		h.peak = max(h.peak, heapInUse())
	}
}

func heapInUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestParseMemory checks that memory use does not grow with the number of records, except
// for a few bytes per source. It is not parallel, because it measures the whole process.
func TestParseMemory(t *testing.T) {
	if testing.Short() {
		return // measures memory
	}
	const allowed = 24 << 20 // the document is almost twice as long
	report := longReport(t)
	before := heapInUse()
	watcher := &heapWatcher{in: bytes.NewReader(report)}
	var stderr bytes.Buffer
	p := &program{in: watcher, out: watcher, err: &stderr}
	if status := p.run(t.Context(), []string{"parse", "--json", "-"}); status != exitDone {
		t.Fatalf("got status %d, want %d: %s", status, exitDone, stderr.String())
	}
	if watcher.lines < manyRecords {
		t.Errorf("got %d lines, want at least one for each of %d records", watcher.lines, manyRecords)
	}
	if watcher.peak <= before {
		t.Errorf("got no more than the %d bytes in use before, want the memory measured", before)
	}
	if watcher.peak > before+allowed {
		t.Errorf("got %d MiB in use, want at most %d", (watcher.peak-before)>>20, allowed>>20)
	}
}
