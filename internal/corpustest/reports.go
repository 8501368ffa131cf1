package corpustest

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/intake/unpack"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// Report is a report in the index of the corpus.
type Report[Facts any] struct {
	// File is the path below the folder of the corpus.
	File   string
	Kind   string
	Expect struct{ Status string }
	Facts  Facts

	folder string
}

// Path returns the path of the file.
func (r Report[Facts]) Path() string { return filepath.Join(r.folder, filepath.FromSlash(r.File)) }

// Accepted reports whether the file is a report, if only a tolerant reader takes it.
func (r Report[Facts]) Accepted() bool { return strings.HasPrefix(r.Expect.Status, "accept") }

// Reports returns the reports of the kinds aggregate, failure or tlsrpt. It skips the test where
// there is no corpus.
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
