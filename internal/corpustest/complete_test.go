package corpustest_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/corpustest"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

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
