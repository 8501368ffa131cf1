package unpack_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/dmarcd/dmarcd/internal/intake/unpack"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

func BenchmarkWalk(b *testing.B) {
	mail := musttest.Get(os.ReadFile(filepath.Join("testdata", "plain-as-rfc9990.eml")))(b)
	for _, input := range []struct {
		name string
		data []byte
	}{
		{"gzip", gzipped(b, report)},
		{"zip", zipped(b, "a.xml", report)},
		{"mail", mail},
	} {
		b.Run(input.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(input.data)))
			for b.Loop() {
				err := new(unpack.Walker).Walk(b.Context(), bytes.NewReader(input.data), unpack.DefaultLimits(), func(p *unpack.Part) error {
					_, err := io.Copy(io.Discard, p)
					return err
				})
				musttest.Do(b, err)
			}
		})
	}
}
