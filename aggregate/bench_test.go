package aggregate_test

import (
	"bytes"
	"encoding/xml"
	"io"
	"testing"

	"github.com/dmarcd/dmarcd/aggregate"
)

const benchRecords = 100_000

// BenchmarkRead compares the reader with encoding/xml into structs.
func BenchmarkRead(b *testing.B) {
	document, err := io.ReadAll(sample(benchRecords))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("aggregate", func(b *testing.B) {
		b.SetBytes(int64(len(document)))
		b.ReportAllocs()
		for b.Loop() {
			r := aggregate.NewReader(bytes.NewReader(document), aggregate.Limits{})
			n := 0
			for _, err := range r.All() {
				if err != nil {
					b.Fatal(err)
				}
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
			if err := xml.NewDecoder(bytes.NewReader(document)).Decode(&report); err != nil {
				b.Fatal(err)
			}
			if n := len(report.Records); n != benchRecords {
				b.Fatalf("got %d records, want %d", n, benchRecords)
			}
		}
	})
}
