package intake_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/costtest"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/packtest"
)

// TestBombs sends input that is made to exhaust a reader. Each must be handled in less than 5
// s of processor time and 256 MiB of total allocations; it is not parallel because of that count. Package unpack
// tests pure containers; these reach the report readers, or end the reading of a message.
func TestBombs(t *testing.T) {
	if testing.Short() {
		return
	}
	const limit = 5 * time.Second
	const memory = 256 << 20
	laughs := strings.Builder{}
	laughs.WriteString(`<?xml version="1.0"?><!DOCTYPE feedback [<!ENTITY l0 "lol">`)
	for i := range 30 {
		fmt.Fprintf(&laughs, `<!ENTITY l%d "%s">`, i+1, strings.Repeat(fmt.Sprintf("&l%d;", i), 10))
	}
	laughs.WriteString(`]>`)
	body := strings.TrimPrefix(opening, `<?xml version="1.0"?>`)
	for _, bomb := range []struct {
		name    string
		content []byte
		want    string // part of the description
	}{
		// Members of one gzip stream are one content (RFC 1952 §2.2).
		{"4 GiB of zeros in gzip", bytes.Repeat(packtest.Gzip(make([]byte, 64<<20)), 64), "the content is not a report"},
		{
			"4 GiB of zeros in a report in gzip",
			append(packtest.Gzip([]byte(opening)), bytes.Repeat(packtest.Gzip(make([]byte, 64<<20)), 64)...),
			"a text or tag is too long",
		},
		{"a zip of 20,000 reports", stored(t, manyReports(20_000)...), "over the limit of 1000 for members"},
		{"entities within entities", []byte(laughs.String() + strings.Replace(body, "receiver.example</org", "&l30;</org", 1) + closing), `by "&l30;"`},
		{"two million nested elements", []byte(opening + strings.Repeat("<a>", 2_000_000)), "deep"},
		{"one element of 30 MB", []byte(opening + "<extra>" + strings.Repeat("x", 30_000_000) + "</extra>" + closing), "long"},
		{"one tag of 30 MB", []byte(opening + "<extra " + strings.Repeat("x", 30_000_000) + "/>" + closing), "long"},
		{"a TLS report of two million nested lists", []byte(`{"report-id":` + strings.Repeat("[", 2_000_000)), "deep"},
		{"a TLS report with one text of 30 MB", []byte(`{"report-id":"` + strings.Repeat("x", 30_000_000) + `"}`), "long"},
	} {
		t.Run(bomb.name, func(t *testing.T) {
			a := acceptor(t)
			var before, after runtime.MemStats
			var opened *intake.Opened
			var err error
			runtime.ReadMemStats(&before)
			costtest.Within(t, limit, func() { opened, err = a.Read(t.Context(), message(bomb.content)) })
			runtime.ReadMemStats(&after)
			if err != nil {
				t.Fatalf("got error %v, want a delivery", err)
			}
			defer opened.Close()
			told := strings.Join(describeDelivery(opened.Delivery), "\n")
			if !strings.Contains(told, bomb.want) {
				t.Errorf("got %.500q, want something about %q", told, bomb.want)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > memory {
				t.Errorf("got %d bytes allocated, want at most %d", used, memory)
			}
		})
	}
}

func manyReports(n int) []string {
	reports := make([]string, n)
	for i := range reports {
		reports[i] = opening + closing
	}
	return reports
}
