package web

import (
	"testing"

	"github.com/dmarcd/dmarcd"
)

// TestFigures compares a period with the previous one.
func TestFigures(t *testing.T) {
	t.Parallel()
	counts := func(pass, fail int64) dmarcd.Counts {
		return dmarcd.Counts{Summary: dmarcd.Summary{Compliant: pass, NonCompliant: fail}}
	}
	for _, row := range []struct {
		name                   string
		now, before            dmarcd.Counts
		messages, passes, fail string
	}{
		{"less", counts(90, 3), counts(80, 20), "−7 % vs previous 30 days", "+16.8 points vs previous 30 days", "−85 % vs previous 30 days"},
		{"the same", counts(90, 10), counts(90, 10), "±0 % vs previous 30 days", "±0 points vs previous 30 days", "±0 % vs previous 30 days"},
		{"much more", counts(12_000, 11), counts(10, 1), "11 in the previous 30 days", "+9.0 points vs previous 30 days", "1 in the previous 30 days"},
		{"no failures before", counts(5, 5), counts(5, 0), "+100 % vs previous 30 days", "−50.0 points vs previous 30 days", "none in the previous 30 days"},
		{"nothing to compare with", counts(5, 0), counts(0, 0), "", "", ""},
		{"no mail now", counts(0, 0), counts(5, 5), "−100 % vs previous 30 days", "no mail in this period", "−100 % vs previous 30 days"},
	} {
		got := figures(row.now, row.before, 30)
		for i, want := range []string{row.messages, row.passes, row.fail} {
			if got[i].Note != want {
				t.Errorf("%s: %s: got %q, want %q", row.name, got[i].Name, got[i].Note, want)
			}
		}
	}
}
