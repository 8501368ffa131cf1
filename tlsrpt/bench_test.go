package tlsrpt_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/tlsrpt"
)

func BenchmarkParseRecord(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		tlsrpt.ParseRecord("v=TLSRPTv1; rua=mailto:reports@example.com,https://reporting.example.com/v1/tlsrpt")
	}
}

// BenchmarkReadReport reads a typical report, with one policy and no failures, and a
// large one.
func BenchmarkReadReport(b *testing.B) {
	for _, failures := range []int{0, 10_000} {
		b.Run(strconv.Itoa(failures)+" failures", func(b *testing.B) {
			detail := `,{"result-type":"certificate-expired","sending-mta-ip":"192.0.2.1","receiving-mx-hostname":"a.mx.example","failed-session-count":1}`
			details := strings.TrimPrefix(strings.Repeat(detail, failures), ",")
			document := head + `[` + strings.TrimSuffix(entry, "}") + `,"failure-details":[` + details + `]}]}`
			b.SetBytes(int64(len(document)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tlsrpt.ReadReport(strings.NewReader(document), tlsrpt.Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
