package phrase_test

import (
	"math"
	"testing"

	"github.com/dmarcd/dmarcd/internal/phrase"
)

func TestFormatCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 addresses", 1: "1 address", 2: "2 addresses", 1200: "1,200 addresses"} {
		if got := phrase.Count(n, "address"); got != want {
			t.Errorf("%d: got %s want %s", n, got, want)
		}
	}
	if got, want := phrase.Count(2, "failing message"), "2 failing messages"; got != want {
		t.Errorf("got %s want %s", got, want)
	}
}

func TestFormatNumber(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1,000", 123456: "123,456", 1234567: "1,234,567",
		-1: "−1", -999: "−999", -1000: "−1,000", math.MaxInt64: "9,223,372,036,854,775,807", math.MinInt64: "−9,223,372,036,854,775,808",
	} {
		if got := phrase.Number(n); got != want {
			t.Errorf("%d: got %s want %s", n, got, want)
		}
	}
}
