package tlsrpt_test

import (
	"testing"

	"github.com/dmarcd/dmarcd/tlsrpt"
)

func BenchmarkParseRecord(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		tlsrpt.ParseRecord("v=TLSRPTv1; rua=mailto:reports@example.com,https://reporting.example.com/v1/tlsrpt")
	}
}
