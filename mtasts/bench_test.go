package mtasts_test

import (
	"testing"

	"github.com/dmarcd/dmarcd/mtasts"
)

func BenchmarkParseRecord(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		mtasts.ParseRecord("v=STSv1; id=20160831085700Z;")
	}
}

func BenchmarkParsePolicy(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		mtasts.ParsePolicy(goodPolicy)
	}
}
