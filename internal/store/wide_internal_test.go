package store

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/dmarcd/dmarcd"
)

// TestWide compares sums with those of math/big.
func TestWide(t *testing.T) {
	limit := big.NewInt(dmarcd.MaxCount)
	rapid.Check(t, func(t *rapid.T) {
		var got wideCounts
		want := new(big.Int)
		for _, n := range rapid.SliceOf(rapid.Int64Range(0, dmarcd.MaxCount)).Draw(t, "counts") {
			counts := widen(dmarcd.Counts{Summary: dmarcd.Summary{Compliant: n}})
			repeated := wide{high: counts[0].high * 5_000, low: counts[0].low * 5_000} // as SQL adds up
			sum := new(big.Int).Mul(big.NewInt(n), big.NewInt(5_000))
			counts[0] = repeated
			if rapid.Bool().Draw(t, "subtract") {
				counts, sum = counts.negative(), sum.Neg(sum)
			}
			got, want = got.plus(counts), want.Add(want, sum)
		}
		if read, ok := parseWide(got.String()); !ok || read != got {
			t.Fatalf("%s is read as %s", got, read)
		}
		saturated := new(big.Int).Set(want)
		if want.CmpAbs(limit) > 0 {
			saturated.Mul(limit, big.NewInt(int64(want.Sign())))
		}
		if got.String() != want.String()+" 0 0 0 0 0 0" || got.saturated().Compliant != saturated.Int64() || got.full() != (want.CmpAbs(limit) >= 0) {
			t.Fatalf("got %s (saturated: %d, full: %t), want %s", got, got.saturated().Compliant, got.full(), want)
		}
	})
}
