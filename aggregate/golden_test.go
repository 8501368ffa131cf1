package aggregate_test

import (
	"bytes"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/goldentest"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// golden is the content of a golden file.
type golden struct {
	Version   string
	Namespace string
	Dialect   aggregate.Dialect
	Metadata  aggregate.Metadata
	Policy    aggregate.PublishedPolicy
	Key       aggregate.Key
	Content   string // the first bytes of the hash
	Quirks    map[string]int
	Records   []goldenRecord
}

type goldenRecord struct {
	aggregate.Record
	Compliant bool
}

func goldenOf(report aggregate.Report, records []aggregate.Record) golden {
	g := golden{
		Version: report.Version, Namespace: report.Namespace, Dialect: report.Dialect, Metadata: report.Metadata,
		Policy: report.Policy, Key: report.Key(), Content: hex.EncodeToString(report.Content[:8]), Quirks: map[string]int{},
	}
	for _, q := range report.Quirks {
		g.Quirks[q.Quirk.String()] = q.Count
	}
	for _, r := range records {
		g.Records = append(g.Records, goldenRecord{Record: r, Compliant: r.Compliant()})
	}
	return g
}

// TestGolden reads our own files. Each contains one deviation, and its golden file says what that
// changes in the plain report.
func TestGolden(t *testing.T) {
	t.Parallel()
	plainFile := filepath.Join("testdata", "plain-rfc7489.xml")
	plain := goldenOf(readOwnFile(t, plainFile))
	for _, name := range ownFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".xml"), func(t *testing.T) {
			t.Parallel()
			report, records := readOwnFile(t, name)
			file := strings.TrimSuffix(name, ".xml") + ".golden.json"
			if name == plainFile {
				goldentest.CheckJSON(t, file, plain)
			} else {
				goldentest.CheckDifference(t, file, plain, goldenOf(report, records))
			}
			checkRoundTrip(t, report, records)
		})
	}
}

// TestEveryQuirkHasAFile checks that every quirk has an example, a name and a meaning.
func TestEveryQuirkHasAFile(t *testing.T) {
	t.Parallel()
	met := make(map[aggregate.Quirk]bool)
	for _, name := range ownFiles(t) {
		report, _ := readOwnFile(t, name)
		for _, q := range report.Quirks {
			met[q.Quirk] = true
		}
	}
	// TestLimits covers this quirk: it needs more than a hundred results.
	met[aggregate.ElementsDropped] = true
	names := make(map[string]bool)
	for _, q := range aggregate.Quirks() {
		if !met[q] {
			t.Errorf("got no file with the quirk %q, want one", q)
		}
		if q.String() == "" || names[q.String()] || strings.Trim(q.String(), "abcdefghijklmnopqrstuvwxyz_") != "" {
			t.Errorf("got the name %q, want one of its own in snake case", q)
		}
		if !strings.HasSuffix(q.Meaning(), ".") {
			t.Errorf("%s: got the meaning %q, want a sentence", q, q.Meaning())
		}
		names[q.String()] = true
	}
}

// TestPlainReportsHaveNoQuirks checks that reports that follow the specifications have no
// quirks.
func TestPlainReportsHaveNoQuirks(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"plain-rfc7489", "plain-rfc9990", "extension-elements", "metadata-errors", "identifiers-null-sender"} {
		report, _ := readOwnFile(t, filepath.Join("testdata", name+".xml"))
		if len(report.Quirks) > 0 {
			t.Errorf("%s: got quirks %v, want none", name, report.Quirks)
		}
	}
}

func ownFiles(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", "*.xml"))
	if err != nil || len(names) == 0 {
		t.Fatalf("got %d files and error %v, want some", len(names), err)
	}
	return names
}

func readOwnFile(t *testing.T, name string) (aggregate.Report, []aggregate.Record) {
	t.Helper()
	report, records, err := read(openOwnFile(t, name))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return report, records
}

func openOwnFile(t *testing.T, name string) io.Reader {
	t.Helper()
	content := musttest.Get(os.ReadFile(name))(t)
	return bytes.NewReader(content)
}

func checkGoldenEqual(t *testing.T, name string, want, got golden) {
	t.Helper()
	if diff := cmp.Diff(want, got, ofDocument); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}
