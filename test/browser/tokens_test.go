package browser_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/test/daemon"
)

// revocationLimit is how long the API may still take a revoked token: a second, and
// the rest for a busy machine.
const revocationLimit = 10 * time.Minute

func TestTokenIsMadeUsedAndRevoked(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	b := s.open(t)
	b.acceptInvitation(s.link, "ada@example.com")
	b.visit("/app/settings/tokens", http.StatusOK)
	b.write("name", "a script")
	b.choose("scope", "read")
	b.press("Create token")
	token := tokenPattern.FindString(b.text("main"))
	if token == "" {
		t.Fatal("got no token want it shown")
	}
	b.inspect("a new token")
	if got, body := s.api(http.MethodGet, "/domains", token, ""); got != http.StatusOK {
		t.Errorf("the new token: got status %d want 200: %s", got, body)
	}
	if got, _ := s.api(http.MethodPost, "/domains", token, `{"domain":"example.com"}`); got != http.StatusForbidden {
		t.Errorf("the token for reading, to write: got status %d want 403", got)
	}

	b.visit("/app/settings/tokens", http.StatusOK)
	if strings.Contains(b.text("main"), token) {
		t.Error("the page again: got the token want it shown once")
	}
	b.load(clickIn("a script", "Revoke"))
	b.says("The token was revoked.")
	if want := "Revoke the token? Programs that use it stop working at once."; !slices.Contains(b.watch.asks(), want) {
		t.Errorf("the page asked %q want %q among it", b.watch.asks(), want)
	}
	daemon.Eventually(t, revocationLimit, "the revoked token is refused", func() bool {
		got, _ := s.api(http.MethodGet, "/domains", token, "")
		return got == http.StatusUnauthorized
	})
	b.visit("/app/settings/audit", http.StatusOK)
	b.says("created a token")
	b.says("revoked a token")
}
