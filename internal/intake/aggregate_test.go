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

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/musttest"
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
