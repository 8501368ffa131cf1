package aggregate_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestRenderedReportHasNoQuirks checks that rendered reports follow RFC 9990.
func TestRenderedReportHasNoQuirks(t *testing.T) {
	t.Parallel()
	report, records := readOwnFile(t, filepath.Join("testdata", "plain-rfc9990.xml"))
	var rendered bytes.Buffer
	musttest.Do(t, aggregate.Render(&rendered, report, slices.Values(records)))
	again, _, err := read(&rendered)
	musttest.Do(t, err)
	if len(again.Quirks) > 0 || again.Dialect != aggregate.DialectRFC9990 {
		t.Errorf("got dialect %q and quirks %v, want RFC 9990 and none", again.Dialect, again.Quirks)
	}
}

// fullDisk is a writer without space.
type fullDisk struct{ err error }

func (f fullDisk) Write([]byte) (int, error) { return 0, f.err }

func TestRenderReturnsTheErrorOfTheWriter(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left")
	if err := aggregate.Render(fullDisk{full}, aggregate.Report{}, slices.Values([]aggregate.Record{})); !errors.Is(err, full) {
		t.Errorf("got error %v, want %v", err, full)
	}
}
