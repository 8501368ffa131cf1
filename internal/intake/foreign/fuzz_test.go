package foreign_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/intake/foreign"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// FuzzSplit checks that reading ends, that nothing follows an error that ends the file, and
// that our own reader finds no more records in a document than it was written with.
func FuzzSplit(f *testing.F) {
	for _, seed := range []string{jsonReport("r-1", jsonRecord), "[" + jsonFailure + "," + jsonTLS + "]", `{"aggregate_reports":[` + jsonReport("r-2") + `]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ended := false
		for write, err := range foreign.Split(bytes.NewReader(data), t.TempDir()) {
			if ended {
				t.Fatal("something comes after the error that ends the file")
			}
			if err != nil {
				ended = !errors.Is(err, dmarcd.ErrInvalid)
				continue
			}
			var document bytes.Buffer
			musttest.Do(t, write(&document))
			if !bytes.Contains(document.Bytes(), []byte("<feedback")) {
				continue // not an aggregate report
			}
			elements, read := bytes.Count(document.Bytes(), []byte("<record>")), 0
			for _, err := range aggregate.NewReader(&document, aggregate.Limits{}).All() {
				if err != nil {
					break // the report lacks what is required
				}
				read++
			}
			if read > elements {
				t.Errorf("got %d records, want at most %d", read, elements)
			}
		}
	})
}
