package store

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// wideBits is the size of the lower part of a wide number.
const wideBits = 20

// wide is an exact sum of counts, which may not fit in 64 bits: high·2^wideBits + low.
type wide struct{ high, low int64 }

// wideSum returns SQL for the two parts of the sum of a column.
func wideSum(column string) string {
	return fmt.Sprintf(`CAST(COALESCE(SUM(%[1]s / %[2]d), 0) AS BIGINT), CAST(COALESCE(SUM(%[1]s %% %[2]d), 0) AS BIGINT)`, column, 1<<wideBits)
}

// fields are destinations for the columns of wideSum.
func (w *wide) fields() []any { return []any{&w.high, &w.low} }

func (w wide) plus(other wide) wide {
	low := w.low + other.low
	return wide{high: w.high + other.high + low>>wideBits, low: low & (1<<wideBits - 1)}
}

// saturated is the number, or ±dmarcd.MaxCount if it is beyond that.
func (w wide) saturated() int64 {
	const limit = dmarcd.MaxCount>>wideBits + 2
	w = w.plus(wide{}) // the sums of the lower parts are large
	return max(-dmarcd.MaxCount, min(max(-limit, min(w.high, limit))<<wideBits+w.low, dmarcd.MaxCount))
}

// wideCounts are dmarcd.Counts in the order of countPointers.
type wideCounts [7]wide

// wideSums is wideSum for the counts of a table.
func wideSums(table string) string {
	var sums []string
	for column := range strings.SplitSeq(countColumns, ", ") {
		sums = append(sums, wideSum(table+`.`+column))
	}
	return strings.Join(sums, ", ")
}

// fields are destinations for the columns of wideSums.
func (w *wideCounts) fields() []any {
	var fields []any
	for i := range w {
		fields = append(fields, w[i].fields()...)
	}
	return fields
}

func widen(c dmarcd.Counts) (w wideCounts) {
	for i, field := range countPointers(&c) {
		w[i].low = *field
	}
	return w.plus(wideCounts{})
}

func (w wideCounts) plus(other wideCounts) wideCounts {
	for i := range w {
		w[i] = w[i].plus(other[i])
	}
	return w
}

func (w wideCounts) negative() wideCounts {
	for i := range w {
		w[i] = wide{}.plus(wide{-w[i].high, -w[i].low})
	}
	return w
}

func (w wideCounts) saturated() (c dmarcd.Counts) {
	for i, field := range countPointers(&c) {
		*field = w[i].saturated()
	}
	return c
}

// full reports whether a number saturates, in either direction.
func (w wideCounts) full() bool {
	for i := range w {
		if n := w[i].saturated(); max(n, -n) == dmarcd.MaxCount {
			return true
		}
	}
	return false
}

// String returns the numbers in decimal. parseWide reads it.
func (w wideCounts) String() string {
	var numbers []string
	for i := range w {
		n := new(big.Int).Lsh(big.NewInt(w[i].high), wideBits)
		numbers = append(numbers, n.Add(n, big.NewInt(w[i].low)).String())
	}
	return strings.Join(numbers, " ")
}

func parseWide(s string) (w wideCounts, ok bool) {
	numbers := strings.Fields(s)
	if len(numbers) != len(w) {
		return w, false
	}
	for i, number := range numbers {
		n, ok := new(big.Int).SetString(number, 10)
		if !ok {
			return w, false
		}
		w[i].low = new(big.Int).And(n, big.NewInt(1<<wideBits-1)).Int64()
		w[i].high = n.Rsh(n, wideBits).Int64()
	}
	return w, true
}
