// Package corpustest gives tests access to the corpus: tables and files of other projects,
// which are not part of this repository. The environment variable DMARCD_CORPUS names its
// folder; a relative path starts at the root of the repository.
//
// Without the corpus these tests are skipped: they show that we agree with others, while each
// package tests the rules with its own files. scripts/say-skipped.sh lists them, because go
// test does not. The packages know how to read the tables.
package corpustest

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/intake/unpack"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// variable names the folder of the corpus.
const variable = "DMARCD_CORPUS"

// Dir returns the folder of the corpus. It skips the test without one.
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

// repository returns the root of the repository, where go.mod is. Tests run in the folder of
// their package.
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

// File reads a file below the folder dns of the corpus. The name is a pattern for fs.Glob that
// matches exactly one file. It skips the test without a corpus.
func File(t testing.TB, name string) []byte {
	t.Helper()
	files := os.DirFS(filepath.Join(Dir(t), "dns"))
	paths, err := fs.Glob(files, name)
	if err != nil || len(paths) != 1 {
		t.Fatalf("%s: got %d files, want 1 (%v)", name, len(paths), err)
	}
	return musttest.Get(fs.ReadFile(files, paths[0]))(t)
}

// Table decodes a JSON file, named as for File, into table. It skips the test without a corpus.
func Table(t testing.TB, name string, table any) {
	t.Helper()
	if err := json.Unmarshal(File(t, name), table); err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
}

// Texts are the TXT records of a case by name: a list of them, or a word such as SERVFAIL for a
// name whose lookup fails.
type Texts map[string]json.RawMessage

// AddTo adds the records to a zone.
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

// Report is a report in the index of the corpus.
type Report[Facts any] struct {
	// File is the path relative to the folder of the corpus.
	File   string
	Kind   string
	Expect struct{ Status string }
	Facts  Facts

	folder string
}

// Path returns the path of the file.
func (r Report[Facts]) Path() string { return filepath.Join(r.folder, filepath.FromSlash(r.File)) }

// Accepted reports whether the file is a report, even if only tolerant parsers accept it.
func (r Report[Facts]) Accepted() bool { return strings.HasPrefix(r.Expect.Status, "accept") }

// Reports returns the reports of the kinds aggregate, failure or tlsrpt. It skips the test
// without a corpus.
func Reports[Facts any](t testing.TB, kinds ...string) []Report[Facts] {
	t.Helper()
	folder := Dir(t)
	content := musttest.Get(os.ReadFile(filepath.Join(folder, "INDEX.json")))(t)
	var index struct{ Files []json.RawMessage }
	musttest.Do(t, json.Unmarshal(content, &index))
	var reports []Report[Facts]
	for _, raw := range index.Files {
		var entry struct{ Kind string }
		musttest.Do(t, json.Unmarshal(raw, &entry))
		if slices.Contains(kinds, entry.Kind) { // others have other facts
			report := Report[Facts]{folder: folder}
			musttest.Do(t, json.Unmarshal(raw, &report))
			reports = append(reports, report)
		}
	}
	if len(reports) == 0 {
		t.Fatalf("got no report of the kinds %q in the index, want some", kinds)
	}
	return reports
}

// Documents returns the documents in a file, without their containers. A file that cannot be
// unpacked is one document.
func Documents(t testing.TB, path string) (documents [][]byte) {
	t.Helper()
	content := musttest.Get(os.ReadFile(path))(t)
	musttest.Do(t, new(unpack.Walker).Walk(t.Context(), bytes.NewReader(content), unpack.DefaultLimits(), func(p *unpack.Part) error {
		if p.Kind == unpack.Rejected {
			documents = append(documents, content)
			return nil
		}
		document, err := io.ReadAll(p)
		documents = append(documents, document)
		return err
	}))
	return documents
}

// Disagreements is the reason why we differ from a table, by the id of the case.
type Disagreements map[string]string

// Comparison compares our results with a table. Every difference must be listed with a reason,
// and every listed case must exist and differ. It is not safe for concurrent use.
type Comparison struct {
	t     testing.TB
	known Disagreements
	seen  map[string]bool
}

// Compare starts a comparison. At the end of the test it fails if no case was compared, or if a
// listed disagreement was not among them.
func Compare(t testing.TB, known Disagreements) *Comparison {
	t.Helper()
	c := &Comparison{t: t, known: known, seen: make(map[string]bool)}
	t.Cleanup(c.finish)
	return c
}

// Compare adds one case: whether we agree with the table, our result and that of the table.
func (c *Comparison) Compare(id string, agrees bool, got, want any) {
	c.t.Helper()
	c.seen[id] = true
	reason, listed := c.known[id]
	switch {
	case agrees && listed:
		c.t.Errorf("%s: got what the table wants, but a disagreement is listed: %s", id, reason)
	case !agrees && !listed:
		c.t.Errorf("%s: got %+v, want %+v", id, got, want)
	}
}

func (c *Comparison) finish() {
	if len(c.seen) == 0 {
		c.t.Error("got no case to compare, want some")
	}
	for _, id := range slices.Sorted(maps.Keys(c.known)) {
		if !c.seen[id] {
			c.t.Errorf("%s: a disagreement is listed, but there is no such case", id)
		}
	}
}
