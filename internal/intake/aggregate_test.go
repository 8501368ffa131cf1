package intake_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"iter"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/costtest"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/packtest"
)

// all returns the records of a report.
func all(t rapid.TB, records iter.Seq2[aggregate.Record, error]) []aggregate.Record {
	t.Helper()
	var list []aggregate.Record
	for r, err := range records {
		if err != nil {
			t.Fatalf("got error %v, want none", err)
		}
		list = append(list, r)
	}
	return list
}

// stored returns an uncompressed zip archive.
func stored(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i, content := range files {
		w := musttest.Get(z.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("%d.xml", i), Method: zip.Store}))(t)
		musttest.Get(io.WriteString(w, content))(t)
	}
	musttest.Do(t, z.Close())
	return b.Bytes()
}

// TestSharesAreTheSumsOfRecords compares deliveries of random reports with the records of
// package aggregate. Some reports are alone in a file, so that records stay in memory; others
// follow a report that fills it.
func TestSharesAreTheSumsOfRecords(t *testing.T) {
	t.Parallel()
	a := acceptor(t)
	blanks := strings.Repeat(" ", (1<<20-len(opening+closing))/3-5) + "<x/>"
	filler := opening + strings.Repeat(blanks, 3) + closing // almost fills the memory for records
	words := rapid.SampledFrom([]string{"pass", "fail", "", "none", "hardfail", "odd"})
	rapid.Check(t, func(rt *rapid.T) {
		var b strings.Builder
		b.WriteString(opening)
		for range rapid.IntRange(0, 30).Draw(rt, "records") {
			b.WriteString(recordOf(
				rapid.SampledFrom([]string{"example.com", "a.example.com", "A.Example.com", "", "b.example"}).Draw(rt, "from"),
				rapid.SampledFrom([]string{"none", "quarantine", "reject", "pass", ""}).Draw(rt, "disposition"),
				words.Draw(rt, "dkim"), words.Draw(rt, "spf"), rapid.Int64Range(0, 1<<53-1).Draw(rt, "count")))
		}
		b.WriteString(closing)
		want := all(rt, aggregate.NewReader(strings.NewReader(b.String()), aggregate.Limits{}).All())

		contents := [][]byte{[]byte(b.String())}
		if rapid.IntRange(0, 9).Draw(rt, "behind another") == 0 {
			contents = append(contents, stored(t, filler, b.String()))
		}
		for _, content := range contents {
			opened := musttest.Get(a.Read(t.Context(), message(content)))(rt)
			report := opened.Delivery.Reports[len(opened.Delivery.Reports)-1]
			for range 2 {
				diff := cmp.Diff(want, all(rt, report.EachRecord), cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{}))
				if diff != "" {
					rt.Errorf("records (-want +got):\n%s", diff)
				}
			}
			checkShares(rt, &report, want)
			opened.Close()
		}
	})
}

// checkShares compares the sums of a report with its records.
func checkShares(t rapid.TB, report *dmarcd.NewReport, records []aggregate.Record) {
	t.Helper()
	want := make(map[string]dmarcd.Share)
	if len(records) == 0 {
		want[""] = dmarcd.Share{}
	}
	for _, r := range records {
		s := want[r.HeaderFrom]
		s.From = r.HeaderFrom
		s.Records++
		c := dmarcd.Counts{Summary: dmarcd.Summary{NonCompliant: r.Count}}
		if r.Compliant() {
			c.Summary = dmarcd.Summary{Compliant: r.Count}
		}
		passed := map[aggregate.Result]int64{aggregate.ResultPass: r.Count}
		c.DKIM, c.SPF = passed[r.DKIM], passed[r.SPF]
		done := map[aggregate.Policy]int64{r.Disposition: r.Count}
		c.Quarantined, c.Rejected = done[aggregate.PolicyQuarantine], done[aggregate.PolicyReject]
		s.Add(c)
		want[r.HeaderFrom] = s
	}
	got := make(map[string]dmarcd.Share)
	for _, s := range report.Shares {
		got[s.From] = s
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) != len(report.Shares) {
		t.Errorf("%d shares (-want +got):\n%s", len(report.Shares), diff)
	}
	if report.Records != len(records) {
		t.Errorf("got %d records, want %d", report.Records, len(records))
	}
}

// TestManyReportsAtOnce checks that an archive of long reports needs little memory and one
// temporary file, and that all records are there.
func TestManyReportsAtOnce(t *testing.T) {
	if testing.Short() {
		return
	}
	const reports, records = 16, 2000
	a := acceptor(t)
	m := message(longReports(t, reports, records))
	before := heap()
	d := deliver(t, a, m)
	if used := heap() - before; used > 8<<20 {
		t.Errorf("got %d bytes in use, want at most 8 MiB", used)
	}
	if len(d.Reports) != reports {
		t.Fatalf("got %d reports, want %d", len(d.Reports), reports)
	}
	for r, err := range d.Reports[0].EachRecord {
		if err != nil || r.Count != 0 {
			t.Errorf("got count %d and error %v, want the first record", r.Count, err)
		}
		break // iteration may stop early
	}
	for i, r := range slices.Backward(d.Reports) {
		next := int64(i * records)
		for _, got := range all(t, r.EachRecord) {
			if got.Count != next {
				t.Fatalf("report %d: got count %d, want %d", i, got.Count, next)
			}
			next++
		}
		if next != int64((i+1)*records) {
			t.Errorf("report %d: got records up to %d, want %d", i, next, (i+1)*records)
		}
	}
}

// longReports returns an archive of reports whose records have the counts 0, 1, 2…
func longReports(t *testing.T, reports, records int) []byte {
	t.Helper()
	files := make([]string, reports)
	for i := range files {
		var b strings.Builder
		b.WriteString(opening)
		for j := range records {
			b.WriteString(recordOf("example.com", "none", "pass", "fail", int64(i*records+j)))
		}
		b.WriteString(closing)
		files[i] = b.String()
	}
	return stored(t, files...)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

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
		{"4 GiB of zeros in gzip", bytes.Repeat(packtest.Gzip(make([]byte, 64<<20)), 64), "not a report"},
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
			reported := strings.Join(describeDelivery(opened.Delivery), "\n")
			if !strings.Contains(reported, bomb.want) {
				t.Errorf("got %.500q, want something about %q", reported, bomb.want)
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
