package tlsrpt_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd/internal/goldentest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// said compares reports by content and ignores their form.
var said = cmpopts.IgnoreFields(tlsrpt.Report{}, "Quirks")

// read reads a valid report.
func read(t *testing.T, document string) tlsrpt.Report {
	t.Helper()
	report, err := tlsrpt.ReadReport(strings.NewReader(document), tlsrpt.Limits{})
	if err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	return report
}

// quirkNames returns the quirks of a report by name.
func quirkNames(report tlsrpt.Report) map[string]int {
	names := make(map[string]int)
	for _, q := range report.Quirks {
		names[q.Quirk.String()] = q.Count
	}
	return names
}

// quirkList returns the names of the quirks of a report in alphabetical order.
func quirkList(report tlsrpt.Report) string {
	return strings.Join(slices.Sorted(maps.Keys(quirkNames(report))), " ")
}

func rendered(t *testing.T, report tlsrpt.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	musttest.Do(t, tlsrpt.Render(&b, report))
	return b.Bytes()
}

// checkRoundTrip checks that reading the rendered report returns the same report.
func checkRoundTrip(t *testing.T, report tlsrpt.Report) {
	t.Helper()
	document := rendered(t, report)
	again := read(t, string(document))
	if diff := cmp.Diff(report, again, said, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the rendered report says something else (-read +rendered):\n%s", diff)
	}
	if got, want := again.Key(), report.Key(); got != want {
		t.Errorf("key of the rendered report: got %+v, want %+v", got, want)
	}
}

// TestRenderHalfARange renders reports of which one end of the time range is known.
func TestRenderHalfARange(t *testing.T) {
	t.Parallel()
	for _, report := range []tlsrpt.Report{{Begin: 86400}, {End: 86400}, {}} {
		got := strings.Contains(string(rendered(t, report)), "1970-01-02T00:00:00Z")
		if want := report.Begin+report.End != 0; got != want {
			t.Errorf("from %d to %d: got the time %t, want %t", report.Begin, report.End, got, want)
		}
	}
}

// golden is the content of a golden file.
type golden struct {
	Quirks map[string]int  `json:"quirks"`
	Report json.RawMessage `json:"report"`
}

func goldenOf(t *testing.T, report tlsrpt.Report) golden {
	t.Helper()
	return golden{Quirks: quirkNames(report), Report: rendered(t, report)}
}

// TestReports reads our own files: a report without quirks in several forms, and one for
// each quirk, named after it. Their golden files say in what they differ from the plain report.
func TestReports(t *testing.T) {
	t.Parallel()
	plain := goldenOf(t, read(t, string(musttest.Get(os.ReadFile("testdata/report/plain.json"))(t))))
	files := musttest.Get(filepath.Glob("testdata/report/*.json"))(t)
	unseen := make(map[string]bool)
	for _, q := range tlsrpt.Quirks() {
		unseen[q.String()] = true
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		if strings.HasSuffix(name, ".golden") {
			continue
		}
		isQuirk := unseen[name]
		delete(unseen, name)
		if !isQuirk && !strings.HasPrefix(name, "plain") {
			t.Errorf("%s: got a file that is named after no quirk, want one", file)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content := musttest.Get(os.ReadFile(file))(t)
			report := read(t, string(content))
			names := quirkNames(report)
			if isQuirk && names[name] == 0 || !isQuirk && len(names) > 0 {
				t.Errorf("got quirks %v, want those that the name of the file tells", names)
			}
			goldenFile := strings.TrimSuffix(file, ".json") + ".golden.json"
			if name == "plain" {
				goldentest.CheckJSON(t, goldenFile, plain)
			} else {
				goldentest.CheckDifference(t, goldenFile, plain, goldenOf(t, report))
			}
			checkRoundTrip(t, report)
		})
	}
	for name := range unseen {
		t.Errorf("got no file for the quirk %s, want one", name)
	}
}

func TestQuirkNames(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, q := range tlsrpt.Quirks() {
		name, meaning := q.String(), q.Meaning()
		if name == "" || seen[name] || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz-") != "" {
			t.Errorf("quirk %d: got the name %q, want one of its own in lower case", q, name)
		}
		if !strings.HasSuffix(meaning, ".") {
			t.Errorf("%s: got the meaning %q, want a sentence", name, meaning)
		}
		seen[name] = true
	}
	if beyond := tlsrpt.Quirk(len(seen) + 1); beyond.String() != "" || beyond.Meaning() != "" {
		t.Errorf("a quirk beyond the table: got %q, %q, want nothing", beyond, beyond.Meaning())
	}
}
