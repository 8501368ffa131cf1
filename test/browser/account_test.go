package browser_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/dmarcd/dmarcd/test/daemon"
)

// elsewhere signs a user in on another browser, without a screen.
func (s *site) elsewhere(t *testing.T, email string) *visitor {
	t.Helper()
	v := s.visitor(t)
	v.signIn(email)
	v.wantIn("on another browser", true)
	return v
}

func TestAccount(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	b := s.open(t)
	b.acceptInvitation(s.link, "ada@example.com")
	b.do(chromedp.Click(chromedp.CSS("details.menu > summary")))
	b.follow("Your account")
	b.shows("You sign in as ada@example.com.")
	if b.has(`form[action="/app/account/sessions/end"]`) {
		t.Error("with one session: got a button to end others want none")
	}
	b.write("name", "Ada Example")
	b.press("Save name")
	b.shows("Your name was saved.")
	if got := b.text(".menu-user"); got != "Ada Example" {
		t.Errorf("the menu: got %q want the new name", got)
	}

	lost, stored := s.elsewhere(t, "ada@example.com"), s.elsewhere(t, "ada@example.com")
	b.visit("/app/account", http.StatusOK)
	b.shows("Go-http-client/1.1")
	b.inspect("an account with sessions")
	b.load(clickIn("Go-http-client", "End")) // that which was used last
	b.shows("The session was ended.")
	if lostIn, storedIn := lost.get("/app/").status == http.StatusOK, stored.get("/app/").status == http.StatusOK; lostIn == storedIn {
		t.Errorf("after one session was ended: got %t and %t want one of them in", lostIn, storedIn)
	}
	b.press("End all other sessions")
	b.shows("All your other sessions were ended.")
	lost.wantIn("after the others were ended", false)
	stored.wantIn("after the others were ended", false)

	other := s.elsewhere(t, "ada@example.com")
	const next = "other words in another row"
	change := chromedp.Click(`//button[normalize-space()="Change password"]`)
	b.write("current", "these are not the words")
	b.write("password", next)
	if got := b.load(change); got != http.StatusUnprocessableEntity {
		t.Errorf("with a wrong password: got status %d want 422", got)
	}
	b.shows("The current password is incorrect.")
	b.inspect("a wrong password")
	other.wantIn("after a wrong password", true)
	b.write("current", password)
	b.write("password", next)
	b.press("Change password")
	b.shows("Your password was changed")
	other.wantIn("after the password was changed", false)
	for words, want := range map[string]int{password: http.StatusUnauthorized, next: http.StatusSeeOther} {
		if got := s.visitor(t).post("/app/sign-in", url.Values{"email": {"ada@example.com"}, "password": {words}}); got.status != want {
			t.Errorf("sign in with %q: got status %d want %d", words, got.status, want)
		}
	}
}

func TestInvitationIsWithdrawn(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	b := s.open(t)
	b.acceptInvitation(s.link, "ada@example.com")
	b.visit("/app/settings/members", http.StatusOK)
	b.shows("No open invitations")
	b.write("email", "zoe@example.com")
	b.choose("role", "editor")
	b.press("Create invitation")
	link := invitationPath.FindString(b.text("pre.record"))
	if got := b.text(`section:has([action$="/invitations/withdraw"]) tbody`); !strings.Contains(got, "zoe@example.com") || !strings.Contains(got, "editor") {
		t.Errorf("the open invitations: got %q want zoe as editor", got)
	}
	b.inspect("an open invitation")
	if got := s.visitor(t).get(link); got.status != http.StatusOK {
		t.Errorf("the link: got status %d want 200", got.status)
	}
	b.load(clickIn("zoe@example.com", "Withdraw"))
	b.shows("The invitation was withdrawn.")
	b.shows("No open invitations")
	if got := s.visitor(t).get(link); got.status != http.StatusNotFound || !strings.Contains(got.body, "was withdrawn") {
		t.Errorf("the link that was withdrawn: got status %d want 404 and the reason", got.status)
	}
	b.visit("/app/settings/audit", http.StatusOK)
	b.shows("withdrew an invitation")
}

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
	b.shows("The token was revoked.")
	if want := "Revoke the token, and the tokens that it created? Programs that use them stop working at once."; !slices.Contains(b.watch.asks(), want) {
		t.Errorf("the page asked %q want %q among it", b.watch.asks(), want)
	}
	daemon.Eventually(t, revocationLimit, "the revoked token is refused", func() bool {
		got, _ := s.api(http.MethodGet, "/domains", token, "")
		return got == http.StatusUnauthorized
	})
	b.visit("/app/settings/audit", http.StatusOK)
	b.shows("created a token")
	b.shows("revoked a token")
}
