package aggregate_test

import (
	"errors"
	"io"
	"net/netip"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestReset reads all files with one reader, some of them only in part, and compares
// them with what a new reader returns. Records of earlier documents must not change.
func TestReset(t *testing.T) {
	t.Parallel()
	names := append(ownFiles(t), filepath.Join("testdata", "plain-rfc9990.xml"))
	var (
		reader    *aggregate.Reader
		got, want []golden
	)
	for _, name := range names {
		if reader == nil {
			reader = aggregate.NewReader(openOwnFile(t, name), aggregate.Limits{})
		} else {
			reader.Reset(openOwnFile(t, name), aggregate.Limits{})
			if _, err := reader.Next(); err != nil && !errors.Is(err, io.EOF) {
				t.Fatalf("%s: %v", name, err)
			}
			reader.Reset(openOwnFile(t, name), aggregate.Limits{})
		}
		var records []aggregate.Record
		for record, err := range reader.All() {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			records = append(records, record)
		}
		got = append(got, goldenOf(reader.Report(), records))
		want = append(want, goldenOf(readOwnFile(t, name)))
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("(-new reader +reset reader):\n%s", diff)
	}
}

// TestResetReusesBuffers checks that a reader allocates no new window for each document,
// and that one which has read nothing can be reset.
func TestResetReusesBuffers(t *testing.T) {
	const documents = 50
	document := withHead(sampleRecord(0))
	reader := aggregate.NewReader(nil, aggregate.Limits{})
	reader.Reset(strings.NewReader(document), aggregate.Limits{})
	var before, after runtime.MemStats
	for i := range documents {
		if i == 1 {
			runtime.ReadMemStats(&before)
		}
		reader.Reset(strings.NewReader(document), aggregate.Limits{})
		for _, err := range reader.All() {
			musttest.Do(t, err)
		}
	}
	runtime.ReadMemStats(&after)
	const most = 16 << 10 // half a window
	if got := (after.TotalAlloc - before.TotalAlloc) / (documents - 1); got > most {
		t.Errorf("got %d bytes for each document, want at most %d", got, most)
	}
}
