package web_test

import (
	"html"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
)

// TestFailureReportsHaveTheirOwnRetention checks that the page does not promise failure reports
// for as long as records: the operator sets how long they are stored.
func TestFailureReportsHaveTheirOwnRetention(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, user := range []string{viewer, owner} {
		body := html.UnescapeString(s.body(t, user, "/app/settings/retention"))
		if !strings.Contains(body, "The operator sets how long failure reports (<code>retention.failure</code>, 14 days by default) and rejected reports are stored.") {
			t.Errorf("%s: got no retention of failure reports, want it", user)
		}
		if strings.Contains(body, "contents of failure and TLS") {
			t.Errorf("%s: got failure reports stored as long as records, want them apart", user)
		}
	}
}

// TestTokensOfATeamWithoutTheAPI shows a notice to a team whose tokens the API refuses.
func TestTokensOfATeamWithoutTheAPI(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, allowed := range []bool{true, false} {
		musttest.Do(t, s.service.System(service.CommandLine()).SetAPI(t.Context(), "Second <Team>", allowed))
		body := s.body(t, elsewhere, "/app/settings/tokens")
		if got := strings.Contains(body, "This team may not use the API") && strings.Contains(body, "<code>dmarcd team allow NAME</code>"); got == allowed {
			t.Errorf("the API is allowed: %v: got a notice: %v, want it only for a team without the API", allowed, got)
		}
	}
}
