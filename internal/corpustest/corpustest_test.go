package corpustest_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/corpustest"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// The tests below that set the environment cannot run in parallel.

func TestWithoutCorpus(t *testing.T) {
	t.Setenv("DMARCD_CORPUS", "")
	skipped := false
	t.Run("the test is skipped", func(t *testing.T) {
		defer func() { skipped = t.Skipped() }()
		var table any
		corpustest.Table(t, "a/table.json", &table)
		t.Errorf("got %v, want no table", table)
	})
	if !skipped {
		t.Error("got a test that was not skipped, want it skipped")
	}
}

func TestRelativeFolder(t *testing.T) {
	t.Setenv("DMARCD_CORPUS", "corpus")
	root := musttest.Get(filepath.Abs(filepath.Join("..", "..")))(t)
	want := filepath.Join(root, "corpus")
	if got := corpustest.Dir(t); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTable(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "dns", "owner+project")
	musttest.Do(t, os.MkdirAll(folder, 0o700))
	content := `{"good.example": ["one", "two"], "slow.example": "SERVFAIL"}`
	musttest.Do(t, os.WriteFile(filepath.Join(folder, "table.json"), []byte(content), 0o600))
	t.Setenv("DMARCD_CORPUS", dir)

	var texts corpustest.Texts
	corpustest.Table(t, "*+project/table.json", &texts)
	zone := dnstest.New("")
	texts.AddTo(zone)
	good := zone.Resolve(t.Context(), dns.Question{Name: "good.example", Type: dns.TXT})
	if want := []string{"one", "two"}; !slices.Equal(good.Texts(), want) {
		t.Errorf("got %q, want %q", good.Texts(), want)
	}
	slow := zone.Resolve(t.Context(), dns.Question{Name: "slow.example", Type: dns.TXT})
	if slow.Outcome != dns.Inconclusive {
		t.Errorf("got %v, want %v", slow.Outcome, dns.Inconclusive)
	}
}

// observer is a test whose failures are checked.
type observer struct {
	testing.TB

	failures []string
	cleanups []func()
}

func (o *observer) Helper() {}

func (o *observer) Cleanup(f func()) { o.cleanups = append(o.cleanups, f) }

func (o *observer) Error(args ...any) { o.failures = append(o.failures, fmt.Sprint(args...)) }

func (o *observer) Errorf(format string, args ...any) {
	o.failures = append(o.failures, fmt.Sprintf(format, args...))
}

func TestCompare(t *testing.T) {
	t.Parallel()
	type evaluated struct {
		id     string
		agrees bool
	}
	for _, tt := range []struct {
		name  string
		known corpustest.Disagreements
		cases []evaluated
		want  []string
	}{
		{name: "agreement", cases: []evaluated{{"a", true}}},
		{name: "listed disagreement", known: corpustest.Disagreements{"a": "RFC"}, cases: []evaluated{{"a", false}, {"b", true}}},
		{
			name: "disagreement that is not listed", cases: []evaluated{{"a", false}},
			want: []string{"a: got this, want that"},
		},
		{
			name: "agreement that is listed", known: corpustest.Disagreements{"a": "RFC"}, cases: []evaluated{{"a", true}},
			want: []string{"a: got what the table wants, but a disagreement is listed: RFC"},
		},
		{
			name: "listed case that does not exist", known: corpustest.Disagreements{"z": "RFC"}, cases: []evaluated{{"a", true}},
			want: []string{"z: a disagreement is listed, but there is no such case"},
		},
		{name: "no cases", want: []string{"got no case to compare, want some"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			observed := &observer{TB: t}
			comparison := corpustest.Compare(observed, tt.known)
			for _, c := range tt.cases {
				comparison.Compare(c.id, c.agrees, "this", "that")
			}
			for _, cleanup := range observed.cleanups {
				cleanup()
			}
			if !slices.Equal(observed.failures, tt.want) {
				t.Errorf("got %q, want %q", observed.failures, tt.want)
			}
		})
	}
}

// notOurs are the tables that no test reads, and why.
var notOurs = map[string]string{
	"mail-dmarc/from-header-domain.json": "reads the From header of a mail, which is no part of a check",
	"OpenDMARC/from-header-domain.json":  "reads the From header of a mail, which is no part of a check",
}

// TestEveryTableIsRead checks that every DNS table of the corpus is compared with
// by a test somewhere, or left out for a reason.
func TestEveryTableIsRead(t *testing.T) {
	t.Parallel()
	dir := corpustest.Dir(t)
	tests := testSources(t, "../..")
	tables, err := filepath.Glob(filepath.Join(dir, "dns", "*", "*.json"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("got %d tables, %v", len(tables), err)
	}
	for _, table := range tables {
		_, project, _ := strings.Cut(filepath.Base(filepath.Dir(table)), "+")
		name := project + "/" + filepath.Base(table)
		if read := strings.Contains(tests, name+`"`); read == (notOurs[name] != "") {
			t.Errorf("%s: read by a test: %t, left out because: %q", name, read, notOurs[name])
		}
	}
}

// testSources returns the text of all test files but this package's.
func testSources(t *testing.T, root string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") || strings.Contains(path, "corpustest") {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	})
	musttest.Do(t, err)
	return all.String()
}
