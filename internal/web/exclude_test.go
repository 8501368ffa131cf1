package web_test

import (
	"html"
	"net/url"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
)

// TestExcludeIsConfirmed selects reports to exclude. Nothing changes before the user has seen
// how many are selected, and all reporters are selected only on request.
func TestExcludeIsConfirmed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	team := s.service.Team(s.team, service.CommandLine())
	excluded := func() int {
		return len(musttest.Get(team.Reports(t.Context(), service.ReportFilter{State: dmarcd.ReportExcluded}, 0, 10))(t))
	}
	all := func(counted, confirmed string) url.Values {
		return url.Values{"all": {"yes"}, "from": {"2026-10-17"}, "to": {"2026-11-15"}, "counted": {counted}, "confirmed": {confirmed}}
	}
	for _, row := range []struct {
		name     string
		form     url.Values
		message  []string
		excluded int
	}{
		{"the form as the list opens it", url.Values{"from": {"2026-10-17"}, "to": {"2026-11-15"}, "counted": {"false"}}, []string{"Enter a reporter, or select “all reporters”."}, 0},
		{"the same, confirmed", url.Values{"from": {"2026-10-17"}, "confirmed": {"yes"}}, []string{"Enter a reporter, or select “all reporters”."}, 0},
		{"all reports of all time", url.Values{"all": {"yes"}, "confirmed": {"yes"}}, []string{"Enter the first day, the last day, or both."}, 0},
		{"an unknown reporter", url.Values{"reporter": {"unknown.example"}}, []string{"No counted report of unknown.example."}, 0},
		{"a reporter", url.Values{"reporter": {"Bigmail.example"}}, []string{"Excludes 2 reports of Bigmail.example.", ">Exclude 2 reports</button>"}, 0},
		{"all reporters", all("false", ""), []string{"Excludes 4 reports of all reporters from 17 Oct 2026 to 15 Nov 2026.", ">Exclude 4 reports</button>", `name="all" value="yes"`}, 0},
		{"all reporters, confirmed", all("false", "yes"), []string{"Excluded from the counts: 4 reports."}, 4},
		{"all reporters again", all("true", ""), []string{"Includes 4 reports of all reporters from 17 Oct 2026 to 15 Nov 2026 again.", ">Include 4 reports again</button>"}, 4},
		{"all reporters again, confirmed", all("true", "yes"), []string{"Counted again: 4 reports."}, 0},
	} {
		w := s.post(editor, "/app/reports/exclude", row.form)
		for _, want := range row.message {
			if !strings.Contains(html.UnescapeString(w.Body.String()), want) {
				t.Errorf("%s: got %d without %q, want it", row.name, w.Code, want)
			}
		}
		if got := excluded(); got != row.excluded {
			t.Errorf("%s: got %d excluded reports, want %d", row.name, got, row.excluded)
		}
	}
	if body := s.body(t, editor, "/app/reports/exclude"); !strings.Contains(body, "counts all excluded reports that match") {
		t.Error("got no explanation of what is included again, want it")
	}
}
