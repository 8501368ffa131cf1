package web_test

import (
	"html"
	"strings"
	"testing"
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
