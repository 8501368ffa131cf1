package intake_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/packtest"
)

// TestReaderReusesBuffers reads many inputs twice with one reader, and wants what Read
// returns for each of them. The inputs are reports in containers, some of them damaged.
func TestReaderReusesBuffers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	inputs := readerInputs(t)
	reader := intake.NewReader(intake.DefaultLimits())
	for range 2 {
		for name, input := range inputs {
			var want, got []string
			wantErr := intake.NewReader(intake.DefaultLimits()).Read(t.Context(), bytes.NewReader(input), collect(t, &want))
			err := reader.Read(t.Context(), bytes.NewReader(input), collect(t, &got))
			if (err == nil) != (wantErr == nil) {
				t.Errorf("%s: got error %v, want %v", name, err, wantErr)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-Read +Reader):\n%s", name, diff)
			}
		}
	}
}

// readerInputs returns inputs by name.
func readerInputs(t *testing.T) map[string][]byte {
	t.Helper()
	inputs := make(map[string][]byte)
	for _, pattern := range []string{"unpack/testdata/*.eml", "../../aggregate/testdata/*.xml", "../../tlsrpt/testdata/report/*.json"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: got %d files and error %v, want some", pattern, len(names), err)
		}
		for _, name := range names {
			content := musttest.Get(os.ReadFile(name))(t)
			packed := packtest.Gzip(content)
			inputs[name] = content
			inputs[name+".gz"] = packed
			inputs[name+".gz cut off"] = packed[:len(packed)*2/3]
			inputs[name+".zip"] = packtest.Zip("a.xml", string(content), "b.xml", string(content))
		}
	}
	return inputs
}

// collect describes items with their records.
func collect(t *testing.T, items *[]string) intake.Visit {
	return func(item *intake.Item) error {
		description := describe(item)
		if item.Aggregate != nil {
			for record, err := range item.Aggregate.Records(t.Context()) {
				if err != nil {
					return err
				}
				text, err := json.Marshal(record)
				if err != nil {
					return err
				}
				description += "\n" + string(text)
			}
		}
		*items = append(*items, description)
		return nil
	}
}
