package browser_test

import (
	"net/http"
	"testing"
)

// TestTask08 invites an editor, who gets what the link promises.
func TestTask08(t *testing.T) {
	t.Parallel()
	inBothWays(t, empty, func(t *testing.T, b *task) {
		b.settings("/app/settings/members")
		b.enter("email", "editor@example.com")
		b.enter("role", "editor")
		b.click(`main form[action="/app/settings/members"] button`)
		b.took(3)
		b.wants("editor@example.com")

		invited := b.site.open(t)
		path := invitationPath.FindString(b.text("main"))
		invited.visit(path, http.StatusOK)
		invited.wants("You are invited to the team default as editor.")
		invited.acceptInvitation(path, "editor@example.com")
		invited.visit("/app/domains/new", http.StatusOK)
		invited.visit("/app/settings/audit", http.StatusForbidden)
	})
}

// TestTask09 creates a token that may read and not write.
func TestTask09(t *testing.T) {
	t.Parallel()
	inBothWays(t, empty, func(t *testing.T, b *task) {
		b.settings("/app/settings/tokens")
		b.enter("name", "nightly export")
		b.click(`main form[action="/app/settings/tokens"] button`)
		b.took(3)
		b.wants("nightly export")
		token := tokenPattern.FindString(b.text("main"))
		for method, want := range map[string]int{http.MethodGet: http.StatusOK, http.MethodPost: http.StatusForbidden} {
			if got, body := b.site.api(method, "/domains", token, `{"domain":"example.com"}`); got != want {
				t.Errorf("%s with the token: got status %d, want %d: %s", method, got, want, body)
			}
		}
	})
}
