package wire_test

import (
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// TestSummaryIsExactInJSON wants each number to be at most 2^52 − 1, and the total to be their sum.
func TestSummaryIsExactInJSON(t *testing.T) {
	t.Parallel()
	const most = 1<<52 - 1
	for _, row := range []struct {
		sum  dmarcd.Summary
		want wire.Summary
	}{
		{dmarcd.Summary{Compliant: 3, NonCompliant: 4}, wire.Summary{Total: 7, Compliant: 3, NonCompliant: 4}},
		{dmarcd.Summary{Compliant: most + 1, NonCompliant: 4}, wire.Summary{Total: most + 4, Compliant: most, NonCompliant: 4}},
		{dmarcd.Summary{Compliant: 1 << 62, NonCompliant: 1 << 62}, wire.Summary{Total: 2 * most, Compliant: most, NonCompliant: most}},
	} {
		if got := wire.NewSummary(row.sum); got != row.want {
			t.Errorf("%+v: got %+v, want %+v", row.sum, got, row.want)
		}
	}
}
