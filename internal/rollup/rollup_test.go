package rollup_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

// row is a record with everything that a block says of it.
type row struct {
	Report     dmarcd.ReportID
	Share      int
	Domain     dmarcd.DomainID
	Day        dmarcd.Day
	Unverified bool
	Reporter   string
	From       string
	N          uint32
	Address    string
	Identity   rollup.Identity
	Outcome    dmarcd.Outcome
	Count      int64
}

// write writes rows of ascending numbers, in a share for each run of rows that have the
// same, and returns the blocks.
func write(rows []row) (blocks [][]byte) {
	var w rollup.Writer
	for i, r := range rows {
		if w.Full() {
			blocks = append(blocks, w.Take())
		}
		if i == 0 || r.Report != rows[i-1].Report {
			w.Begin(rollup.Share{
				Report: r.Report, N: r.Share, Domain: r.Domain, Day: r.Day, Unverified: r.Unverified, Reporter: r.Reporter, From: r.From,
			})
		}
		w.Add(rollup.Record{N: r.N, Address: w.Address(r.Address), Identity: w.Identity(r.Identity), Outcome: r.Outcome, Count: r.Count})
	}
	return append(blocks, w.Take())
}

func read(t musttest.TB, blocks [][]byte, domain dmarcd.DomainID) (rows []row) {
	var b rollup.Block
	var domains map[dmarcd.DomainID]bool
	if domain != 0 {
		domains = map[dmarcd.DomainID]bool{domain: true}
	}
	for _, block := range blocks {
		musttest.Do(t, b.Read(rollup.Part{Block: block, Domains: domains}))
		rows = append(rows, rowsOf(&b)...)
	}
	return rows
}

func rowsOf(b *rollup.Block) (rows []row) {
	for _, s := range b.Shares {
		for _, r := range s.Records {
			identity := b.Identities[r.Identity]
			identity.Signatures, identity.SPF = append([]rollup.Signature(nil), identity.Signatures...), append([]rollup.SPFCheck(nil), identity.SPF...)
			rows = append(rows, row{
				s.Report, s.N, s.Domain, s.Day, s.Unverified, s.Reporter, s.From, r.N,
				rollup.AddressText(b.Addresses.At(r.Address)), identity, r.Outcome, r.Count,
			})
		}
	}
	return rows
}

// TestRoundTrip reads what was written.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		result := rapid.Map(rapid.IntRange(0, int(rollup.Permerror)), func(n int) rollup.Result { return rollup.Result(n) })
		text := rapid.SampledFrom([]string{"", "example.com", "a.example", "x y"})
		var rows []row
		for report := range rapid.IntRange(0, 5).Draw(r, "shares") {
			share := row{
				Report: dmarcd.ReportID(report + 1), Share: rapid.IntRange(0, 300).Draw(r, "share"),
				Domain: dmarcd.DomainID(rapid.Int64Range(1, 3).Draw(r, "domain")), Day: dmarcd.Day(rapid.Int32().Draw(r, "day")),
				Unverified: rapid.Bool().Draw(r, "unverified"), Reporter: text.Draw(r, "reporter"), From: text.Draw(r, "from"),
			}
			for range rapid.IntRange(1, 5).Draw(r, "records") {
				share.Count = rapid.Int64Range(1, math.MaxInt64).Draw(r, "count")
				share.Address = rapid.SampledFrom([]string{"", "192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1", "2001:DB8::1", "no address"}).Draw(r, "address")
				share.Outcome = dmarcd.Outcome(rapid.IntRange(0, int(dmarcd.Outcomes)-1).Draw(r, "outcome"))
				share.Identity = rollup.Identity{Envelope: text.Draw(r, "envelope")}
				for range rapid.IntRange(0, 2).Draw(r, "signatures") {
					share.Identity.Signatures = append(share.Identity.Signatures, rollup.Signature{Domain: text.Draw(r, "signer"), Selector: text.Draw(r, "selector"), Result: result.Draw(r, "result")})
				}
				for range rapid.IntRange(0, 2).Draw(r, "spf") {
					share.Identity.SPF = append(share.Identity.SPF, rollup.SPFCheck{Domain: text.Draw(r, "checked"), Result: result.Draw(r, "result"), Helo: rapid.Bool().Draw(r, "helo")})
				}
				share.Identity.Reasons = rollup.Reasons(rapid.Uint8().Draw(r, "reasons"))
				rows = append(rows, share)
				share.N += 1 + rapid.Uint32Range(0, 1000).Draw(r, "step")
			}
		}
		blocks := write(rows)
		if diff := cmp.Diff(rows, read(r, blocks, 0), cmpopts.EquateEmpty()); diff != "" {
			r.Errorf("-want +got\n%s", diff)
		}
		ofOne := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.Domain != 2 })
		if diff := cmp.Diff(ofOne, read(r, blocks, 2), cmpopts.EquateEmpty()); diff != "" {
			r.Errorf("of a domain: -want +got\n%s", diff)
		}
	})
}

// TestBlocksAreBounded writes a share of many records that have nothing in common.
func TestBlocksAreBounded(t *testing.T) {
	t.Parallel()
	rows := make([]row, 150_000)
	for i := range rows {
		rows[i] = row{
			Report: 1, Domain: 1, N: uint32(i), Count: 1, Address: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255),
			Identity: rollup.Identity{Envelope: fmt.Sprintf("e%d.example", i)},
		}
	}
	blocks := write(rows)
	for _, block := range blocks {
		if len(block) > 3<<20 {
			t.Errorf("got a block of %d bytes, want at most 3 MiB", len(block))
		}
	}
	if got := read(t, blocks, 0); len(blocks) < 3 || !reflect.DeepEqual(got, rows) {
		t.Errorf("got %d records in %d blocks, want all %d in several", len(got), len(blocks), len(rows))
	}
}

// FuzzRead reads blocks that may be damaged: what is read is within its bounds, and comes
// back when it is written.
func FuzzRead(f *testing.F) {
	block := write([]row{
		{Report: 7, Share: 1, Domain: 3, Day: 20_000, Unverified: true, Reporter: "receiver.example", From: "example.com", N: 2, Address: "192.0.2.1", Count: 9, Outcome: 3},
		{Report: 7, N: 5, Address: "none", Count: 1, Identity: rollup.Identity{
			Envelope: "example.com", Signatures: []rollup.Signature{{Domain: "example.com", Selector: "s", Result: rollup.Pass}},
			SPF: []rollup.SPFCheck{{Domain: "example.com", Result: rollup.Permerror, Helo: true}}, Reasons: rollup.Forwarded | rollup.OtherReason,
		}},
	})[0]
	f.Add(block)
	for n := range block {
		f.Add(block[:n])
		f.Add(slices.Concat(block[:n], []byte{0xff}, block[n+1:]))
	}
	f.Fuzz(func(t *testing.T, block []byte) {
		var b rollup.Block
		if err := b.Read(rollup.Part{Block: block}); err != nil {
			if !errors.Is(err, rollup.ErrDamaged) {
				t.Errorf("got %v, want ErrDamaged", err)
			}
			return
		}
		records := 0
		for _, s := range b.Shares {
			for _, r := range s.Records {
				records++
				if int(r.Address) >= b.Addresses.Len() || int(r.Identity) >= len(b.Identities) || r.Outcome >= dmarcd.Outcomes || r.Count < 0 {
					t.Errorf("got the record %+v of %d addresses and %d identities", r, b.Addresses.Len(), len(b.Identities))
				}
			}
		}
		if records > len(block) {
			t.Errorf("got %d records in %d bytes", records, len(block))
		}
	})
}

// BenchmarkRead reads a block of 33,000 records.
func BenchmarkRead(b *testing.B) {
	rows := make([]row, 33_000)
	for i := range rows {
		rows[i] = row{
			Report: dmarcd.ReportID(1<<60 + i/33), Domain: dmarcd.DomainID(1 << 60), Day: 20_000, Reporter: "receiver.example", From: fmt.Sprintf("d%d.example", i/33),
			N: uint32(i % 33), Address: fmt.Sprintf("192.0.%d.%d", i%25_000>>8, i&255), Count: int64(1 + i%9),
			Identity: rollup.Identity{Envelope: fmt.Sprintf("d%d.example", i/33)},
		}
	}
	blocks := write(rows)
	b.SetBytes(int64(len(blocks[0])))
	b.ReportMetric(float64(len(blocks[0]))/float64(len(rows)), "B/record")
	var block rollup.Block
	for b.Loop() {
		musttest.Do(b, block.Read(rollup.Part{Block: blocks[0]}))
	}
}
