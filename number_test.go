package dmarcd_test

import (
	"math"
	"testing"

	"github.com/dmarcd/dmarcd"
)

func TestFormatNumber(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1,000", 123456: "123,456", 1234567: "1,234,567",
		-1: "−1", -999: "−999", -1000: "−1,000", math.MaxInt64: "9,223,372,036,854,775,807", math.MinInt64: "−9,223,372,036,854,775,808",
	} {
		if got := dmarcd.FormatNumber(n); got != want {
			t.Errorf("%d: got %s want %s", n, got, want)
		}
	}
}
