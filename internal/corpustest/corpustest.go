// Package corpustest gives tests the corpus: tables and files gathered from other
// projects, which are no part of this repository. The environment variable
// DMARCD_CORPUS names its folder; a relative path is taken from the root of the
// repository.
//
// Without the corpus a test has nothing to compare with and is skipped: it shows that
// we agree with others, while the rules themselves are tested by each package with
// files of its own. scripts/say-skipped.sh tells which tests these are, because go test
// does not. How a table is read is left to those packages.
package corpustest

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// variable names the folder of the corpus.
const variable = "DMARCD_CORPUS"

// Dir returns the folder of the corpus. It skips the test where there is none.
func Dir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv(variable)
	if dir == "" {
		t.Skipf("%s is not set, nothing to compare with", variable)
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(repository(t), dir)
	}
	return dir
}

// repository returns the root of the repository: tests run in the folder of their
// package, and the root is where go.mod is.
func repository(t testing.TB) string {
	t.Helper()
	dir := musttest.Get(os.Getwd())(t)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("got no go.mod above the test, want one to find the corpus from")
		}
		dir = parent
	}
}

// File reads a file below the folder dns of the corpus. The name is a pattern of
// fs.Glob that matches exactly one. It skips the test where there is no corpus.
func File(t testing.TB, name string) []byte {
	t.Helper()
	files := os.DirFS(filepath.Join(Dir(t), "dns"))
	paths, err := fs.Glob(files, name)
	if err != nil || len(paths) != 1 {
		t.Fatalf("%s: got %d files, want 1 (%v)", name, len(paths), err)
	}
	return musttest.Get(fs.ReadFile(files, paths[0]))(t)
}

// Table reads a JSON file, named as for File, into table. It skips the test where there
// is no corpus.
func Table(t testing.TB, name string, table any) {
	t.Helper()
	if err := json.Unmarshal(File(t, name), table); err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
}

// Texts are the TXT records of a case: by name either a list of them, or a word such
// as SERVFAIL for a name that cannot be looked up.
type Texts map[string]json.RawMessage

// AddTo puts the records into a zone.
func (texts Texts) AddTo(zone *dnstest.Zone) {
	for name, raw := range texts {
		var records []string
		if json.Unmarshal(raw, &records) != nil {
			zone.Fail(name)
			continue
		}
		for _, record := range records {
			zone.Add(dns.Record{Name: name, Type: dns.TXT, Text: []string{record}})
		}
	}
}
