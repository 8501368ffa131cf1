package aggregate_test

import (
	"bytes"
	"encoding/xml"
	"io"
	"testing"

	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

const benchRecords = 100_000

// BenchmarkRead compares the reader with encoding/xml into structs.
func BenchmarkRead(b *testing.B) {
	document := musttest.Get(io.ReadAll(sample(benchRecords)))(b)
	b.Run("aggregate", func(b *testing.B) {
		b.SetBytes(int64(len(document)))
		b.ReportAllocs()
		for b.Loop() {
			r := aggregate.NewReader(bytes.NewReader(document), aggregate.Limits{})
			n := 0
			for _, err := range r.All() {
				musttest.Do(b, err)
				n++
			}
			if n != benchRecords {
				b.Fatalf("got %d records, want %d", n, benchRecords)
			}
		}
	})
	b.Run("encoding-xml", func(b *testing.B) {
		b.SetBytes(int64(len(document)))
		b.ReportAllocs()
		for b.Loop() {
			var report oracleReport
			musttest.Do(b, xml.NewDecoder(bytes.NewReader(document)).Decode(&report))
			if n := len(report.Records); n != benchRecords {
				b.Fatalf("got %d records, want %d", n, benchRecords)
			}
		}
	})
}
