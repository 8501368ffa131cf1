package ui_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// TestPeriodOf parses the period of a URL.
func TestPeriodOf(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)
	for _, row := range []struct{ name, query, want string }{
		{"nothing said", "", "2026-10-17 to 2026-11-15"},
		{"a length", "days=7", "2026-11-09 to 2026-11-15"},
		{"both ends", "from=2026-11-01&to=2026-11-03", "2026-11-01 to 2026-11-03"},
		{"the wrong way round", "from=2026-11-03&to=2026-11-01", "2026-11-01 to 2026-11-03"},
		{"the wrong way round, from tomorrow on", "from=2026-12-03&to=2026-11-01", "2026-11-01 to 2026-11-15"},
		{"no days", "from=2026-02-31&to=soon", "2026-10-17 to 2026-11-15"},
		{"until tomorrow", "from=2026-11-14&to=2026-11-16", "2026-11-14 to 2026-11-15"},
		{"too long ago", "from=1999-01-01&to=2026-11-15", "2024-11-15 to 2026-11-15"},
	} {
		query := musttest.Get(url.ParseQuery(row.query))(t)
		p := ui.PeriodOf(query, now)
		if got := p.From.String() + " to " + p.To.String(); got != row.want {
			t.Errorf("%s: got %s, want %s", row.name, got, row.want)
		}
	}
}
