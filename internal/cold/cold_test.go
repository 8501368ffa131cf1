package cold_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/cold"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store/shape"
)

func readAll(block []byte) ([]cold.Record, error) {
	return cold.ReadShares(block, func(int64, int32) bool { return true })
}

func write(t testing.TB, records []cold.Record) []byte {
	t.Helper()
	var w cold.Writer
	for _, r := range records {
		w.Add(r)
	}
	if got := len(w.Records()); got != len(records) {
		t.Fatalf("got %d records in the writer, want %d", got, len(records))
	}
	block := musttest.Get(w.Take())(t)
	if len(w.Records()) > 0 || w.Full() {
		t.Fatal("the writer is not empty after Take")
	}
	return block
}

// golden are the records of testdata/v1.parquet.
func golden() []cold.Record {
	return []cold.Record{
		{Report: 1, Count: 1, Source: "192.0.2.1", Disposition: "none", DKIM: "pass", SPF: "fail", Details: `{"f":"example.com"}`},
		{Report: 1, N: 1, Count: math.MaxInt64, Source: "2001:db8::1", Disposition: "reject", DKIM: "fail", SPF: "fail", Details: `{}`},
		{Report: 1, Share: 1, N: 2, Source: "not an address", Disposition: "a word of its own"},
		{Report: math.MaxInt64, Share: math.MaxInt32, N: math.MaxInt32, Count: 7, Source: "192.0.2.1", Details: "\u00fc\u4e16"},
	}
}

// TestGolden reads a block of every version that was ever written.
func TestGolden(t *testing.T) {
	t.Parallel()
	block := musttest.Get(os.ReadFile("testdata/v1.parquet"))(t)
	got := musttest.Get(readAll(block))(t)
	if diff := cmp.Diff(golden(), got); diff != "" {
		t.Error(diff)
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "pass", "192.0.2.1"}))
	record := rapid.Custom(func(t *rapid.T) cold.Record {
		return cold.Record{
			Report: rapid.Int64().Draw(t, "report"), Share: rapid.Int32().Draw(t, "share"), N: rapid.Int32().Draw(t, "n"), Count: rapid.Int64().Draw(t, "count"),
			Source: text.Draw(t, "source"), Disposition: text.Draw(t, "disposition"), DKIM: text.Draw(t, "dkim"), SPF: text.Draw(t, "spf"), Details: text.Draw(t, "details"),
		}
	})
	rapid.Check(t, func(rt *rapid.T) {
		want := rapid.SliceOfN(record, 0, 50).Draw(rt, "records")
		block := write(t, want)
		got, err := readAll(block)
		musttest.Do(rt, err)
		if !slices.Equal(got, want) {
			rt.Fatal(cmp.Diff(want, got))
		}
		// Some of them are those of all.
		some := func(report int64, share int32) bool { return report%3 == 0 || share%2 == 0 }
		asked := 0
		got, err = cold.ReadShares(block, func(report int64, share int32) bool {
			if r := want[asked]; r.Report != report || r.Share != share {
				rt.Fatalf("asked for share %d of %d, want %d of %d", share, report, r.Share, r.Report)
			}
			asked++
			return some(report, share)
		})
		musttest.Do(rt, err)
		want = slices.DeleteFunc(want, func(r cold.Record) bool { return !some(r.Report, r.Share) })
		if !slices.Equal(got, want) {
			rt.Fatal(cmp.Diff(want, got))
		}
	})
}

func TestFullBlock(t *testing.T) {
	t.Parallel()
	want := sample(cold.MaxRecords)
	var w cold.Writer
	for _, r := range want {
		if w.Full() {
			t.Fatalf("full with %d records, want %d", len(w.Records()), len(want))
		}
		w.Add(r)
	}
	if !w.Full() {
		t.Error("not full with the maximum of records")
	}
	block := musttest.Get(w.Take())(t)
	got, err := readAll(block)
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("got %d other records, %v", len(got), err)
	}
	// The limit of the format; the benchmark has the figure.
	if size := float64(len(block)) / float64(len(want)); size > 30 {
		t.Errorf("got %.1f bytes for a record, want 30 at most", size)
	}
	if size := cold.Size(got); size < len(want)*100 || size > cold.MaxText*2 {
		t.Errorf("got a size of %d", size)
	}
	w.Add(cold.Record{Details: strings.Repeat("x", cold.MaxText)})
	if !w.Full() {
		t.Error("not full with the maximum of text")
	}
}

// TestDamaged changes a block at each offset: the result is an error or other records, never a
// panic. Anything that is not a block is ErrDamaged.
func TestDamaged(t *testing.T) {
	t.Parallel()
	block := write(t, sample(200))
	for i := range block {
		changed := slices.Clone(block)
		changed[i] ^= 0x55
		if cold.Checksum(changed) == cold.Checksum(block) {
			t.Fatal("the same sum")
		}
		if _, err := readAll(changed); err != nil && !errors.Is(err, cold.ErrDamaged) {
			t.Fatalf("byte %d: got %v, want %v", i, err, cold.ErrDamaged)
		}
	}
	var other, many bytes.Buffer
	musttest.Do(t, parquet.Write(&other, []struct{ Report int64 }{{1}}))
	musttest.Do(t, parquet.Write(&many, make([]cold.Record, cold.MaxRecords+1)))
	for name, bad := range map[string][]byte{
		"empty": nil, "text": []byte("PAR1 this is not a block PAR1"), "half": block[:len(block)/2], "other columns": other.Bytes(),
		"too many records": many.Bytes(), "too long": make([]byte, cold.MaxBytes+1),
	} {
		if _, err := readAll(bad); !errors.Is(err, cold.ErrDamaged) {
			t.Errorf("%s: got %v, want %v", name, err, cold.ErrDamaged)
		}
	}
}

// sample makes up n records as teams receive them: each domain has some senders with a few
// addresses each, and some mail of unknown addresses.
func sample(n int) []cold.Record {
	random := rand.New(rand.NewPCG(1, 2))
	address := func() string {
		if random.IntN(10) == 0 {
			return fmt.Sprintf("2001:db8:%x:%x::%x", random.IntN(1<<16), random.IntN(1<<16), random.IntN(1<<16))
		}
		return fmt.Sprintf("%d.%d.%d.%d", 1+random.IntN(220), random.IntN(256), random.IntN(256), random.IntN(256))
	}
	type sender struct {
		addresses []string
		record    aggregate.Record
	}
	var domains [][]sender
	for d := range 20 {
		name := fmt.Sprintf("domain%d.example", d)
		var senders []sender
		for s := range 12 {
			service := fmt.Sprintf("mail.service%d.example", random.IntN(60))
			own := sender{record: aggregate.Record{
				EnvelopeFrom: service, Disposition: aggregate.PolicyNone, DKIM: aggregate.ResultPass, SPF: aggregate.ResultFail,
				DKIMResults: []aggregate.DKIMResult{
					{Domain: name, Selector: fmt.Sprintf("s%d%x", s, random.IntN(1<<20)), Result: aggregate.ResultPass},
					{Domain: service, Selector: fmt.Sprintf("k%x", random.IntN(1<<24)), Result: aggregate.ResultPass},
				},
				SPFResults: []aggregate.SPFResult{{Domain: service, Scope: "mfrom", Result: aggregate.ResultPass}},
			}}
			for range 1 + random.IntN(20) {
				own.addresses = append(own.addresses, address())
			}
			senders = append(senders, own)
		}
		domains = append(domains, senders)
	}
	var all []cold.Record
	for report := int64(3_400_000_000_000_000_000); len(all) < n; {
		report += random.Int64N(1 << 36)
		senders := domains[random.IntN(len(domains))]
		for i := range int32(1 + random.IntN(100)) {
			s := senders[random.IntN(len(senders))]
			r, source := s.record, s.addresses[random.IntN(len(s.addresses))]
			switch random.IntN(12) {
			case 0: // spoofed
				r = aggregate.Record{
					EnvelopeFrom: fmt.Sprintf("host%d.isp%d.example", random.IntN(1000), random.IntN(50)), Disposition: aggregate.PolicyReject,
					DKIM: aggregate.ResultFail, SPF: aggregate.ResultFail,
				}
				r.SPFResults = []aggregate.SPFResult{{Domain: r.EnvelopeFrom, Scope: "mfrom", Result: aggregate.ResultNone}}
				source = address()
			case 1: // forwarded
				r.SPF, r.Reasons = aggregate.ResultFail, []aggregate.Reason{{Type: "local_policy", Comment: fmt.Sprintf("arc=pass as.%d.d=forwarder%d.example", random.IntN(3), random.IntN(100))}}
				source = address()
			}
			all = append(all, cold.Record{
				Report: report, N: i, Count: 1 + int64(random.ExpFloat64()*20), Source: source,
				Disposition: string(r.Disposition), DKIM: string(r.DKIM), SPF: string(r.SPF), Details: shape.EncodeRecord(r),
			})
		}
	}
	return all[:n]
}

func BenchmarkBlock(b *testing.B) {
	for _, n := range []int{100, 1000, 5000, cold.MaxRecords} {
		records := sample(n)
		var w cold.Writer
		var block []byte
		b.Run(fmt.Sprintf("write/%d", n), func(b *testing.B) {
			for b.Loop() {
				for _, r := range records {
					w.Add(r)
				}
				var err error
				if block, err = w.Take(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(block))/float64(n), "B/record")
		})
		b.Run(fmt.Sprintf("read/%d", n), func(b *testing.B) {
			for b.Loop() {
				musttest.Get(readAll(block))(b)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/record")
		})
		b.Run(fmt.Sprintf("read a twentieth/%d", n), func(b *testing.B) {
			for b.Loop() {
				asked := 0
				some, err := cold.ReadShares(block, func(int64, int32) bool { asked++; return asked%1000 < 50 })
				if err != nil || len(some) == 0 {
					b.Fatal(err)
				}
			}
		})
	}
}
