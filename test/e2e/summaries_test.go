package e2e_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// day returns the counts of a day, such as 2026-11-15.
func day(t *testing.T, text string, compliant, nonCompliant int64) dmarcd.DayCount {
	t.Helper()
	d := musttest.Get(dmarcd.ParseDay(text))(t)
	return dmarcd.DayCount{Day: d, Summary: dmarcd.Summary{Compliant: compliant, NonCompliant: nonCompliant}}
}

func summary(compliant, nonCompliant int64) string {
	return fmt.Sprintf(`{"total":%d,"compliant":%d,"non_compliant":%d}`, compliant+nonCompliant, compliant, nonCompliant)
}

func summariesOfDays(t *testing.T, s *server) {
	in := s.in
	s.add("example.com")
	s.add("example.net")
	in.count("default", "example.com", day(t, "2026-10-31", 1, 2), day(t, "2026-11-01", 10, 20), day(t, "2026-11-30", 100, 200))
	in.count("default", "example.net", day(t, "2026-11-01", 1_000_000_000, 0))
	rows := []struct {
		name, query string
		domain, all string
	}{
		{"everything", "", summary(111, 222), summary(111+1_000_000_000, 222)},
		{"a range", "?from=2026-11-01&to=2026-11-30", summary(110, 220), summary(110+1_000_000_000, 220)},
		{"one day", "?from=2026-11-01&to=2026-11-01", summary(10, 20), summary(10+1_000_000_000, 20)},
		{"from alone", "?from=2026-11-02", summary(100, 200), summary(100, 200)},
		{"to alone", "?to=2026-10-31", summary(1, 2), summary(1, 2)},
		{"nothing in it", "?from=2025-01-01&to=2025-12-31", summary(0, 0), summary(0, 0)},
		{"a leap day", "?to=2024-02-29", summary(0, 0), summary(0, 0)},
		{"unknown parameters", "?since=x&limit=0&from=2026-11-30", summary(100, 200), summary(100, 200)},
	}
	for _, row := range rows {
		for path, want := range map[string]string{"/reports/example.com": row.domain, "/reports": row.all} {
			a := s.get(path + row.query)
			if got := a.text(); a.status != http.StatusOK || got != want && got != want+"\n" {
				t.Errorf("%s: %s: got %d %s want %s", row.name, path, a.status, a.body, want)
			}
		}
	}
}

func summariesWithBadDays(t *testing.T, s *server) {
	s.add("example.com")
	for _, query := range []string{
		"from=yesterday", "to=2026-11-31", "from=2026-02-29", "from=2026-11", "from=20261101", "from=2026-11-1",
		"from=2026-11-01T00:00:00Z", "to=%202026-11-01", "from=1700000000", "from=2026-11-02&to=2026-11-01",
		"from=2026-11-01&to=x", "from=x&to=2026-11-01", "from=-2026-11-01",
	} {
		for _, path := range []string{"/reports", "/reports/example.com"} {
			s.get(path+"?"+query).wantStatus(t, http.StatusUnprocessableEntity)
		}
	}
}

func deletedDomainDoesNotCount(t *testing.T, s *server) {
	in := s.in
	s.add("example.com")
	s.add("example.net")
	in.count("default", "example.com", day(t, "2026-11-01", 10, 20))
	in.count("default", "example.net", day(t, "2026-11-01", 1, 2))
	s.get("/reports").wantBody(t, summary(11, 22))
	s.remove("example.com")
	s.get("/reports").wantBody(t, summary(1, 2))
	s.get("/reports?from=2026-11-01").wantBody(t, summary(1, 2))
	s.get("/reports/example.com").wantStatus(t, http.StatusNotFound)

	s.add("example.com")
	s.get("/reports/example.com").wantBody(t, zeros)
	s.get("/reports").wantBody(t, summary(1, 2))
	in.count("default", "example.com", day(t, "2026-11-01", 5, 5))
	s.get("/reports").wantBody(t, summary(6, 7))
	s.get("/reports/example.com").wantBody(t, summary(5, 5))
}
