package unpack_test

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/dmarcd/dmarcd/internal/corpustest"
	"github.com/dmarcd/dmarcd/internal/intake/unpack"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// corpusFacts are the known facts about a file in the corpus.
type corpusFacts struct {
	Container []string
	Root      string
	Member    string
	XMLBytes  *int `json:"xml_bytes"`
	JSONBytes *int `json:"json_bytes"`
	Reports   []struct {
		Member   string
		XMLBytes *int `json:"xml_bytes"`
	}
}

// found is a part after it is read.
type found struct {
	kind  unpack.Kind
	path  string
	bytes int
}

func TestCorpus(t *testing.T) {
	t.Parallel()
	for _, file := range corpustest.Reports[corpusFacts](t, "aggregate", "failure", "tlsrpt") {
		t.Run(file.File, func(t *testing.T) {
			t.Parallel()
			data := musttest.Get(os.ReadFile(file.Path()))(t)
			var got []found
			err := new(unpack.Walker).Walk(t.Context(), bytes.NewReader(data), unpack.DefaultLimits(), func(p *unpack.Part) error {
				n, err := io.Copy(io.Discard, p)
				got = append(got, found{p.Kind, p.Path, int(n)})
				return err
			})
			if err != nil {
				t.Fatalf("got error %v, want none", err)
			}
			compareParts(t, got, wanted(file))
		})
	}
}

// wanted returns the parts in the index; -1 is an unknown length.
func wanted(f corpustest.Report[corpusFacts]) []found {
	if f.Kind == "failure" && f.Facts.Container == nil {
		return []found{{unpack.Failure, "", 0}}
	}
	kind := unpack.Aggregate
	if f.Kind == "tlsrpt" {
		kind = unpack.TLS
	}
	if len(f.Facts.Reports) > 0 {
		var all []found
		for _, r := range f.Facts.Reports {
			all = append(all, found{kind, r.Member, *r.XMLBytes})
		}
		return all
	}
	length := -1
	switch {
	case f.Facts.XMLBytes != nil:
		length = *f.Facts.XMLBytes
	case f.Facts.JSONBytes != nil:
		length = *f.Facts.JSONBytes
	}
	if f.Expect.Status == "reject" && f.Facts.Root == "" {
		return []found{{unpack.Rejected, f.Facts.Member, 0}}
	}
	return []found{{kind, f.Facts.Member, length}}
}

func compareParts(t *testing.T, got, want []found) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if want[i].bytes < 0 {
			want[i].bytes = got[i].bytes
		}
		if got[i] != want[i] {
			t.Errorf("part %d: got %v, want %v", i, got[i], want[i])
		}
	}
}
