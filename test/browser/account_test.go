package browser_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
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
	b.says("You sign in as ada@example.com.")
	if b.has(`form[action="/app/account/sessions/end"]`) {
		t.Error("with one session: got a button to end others want none")
	}
	b.write("name", "Ada Example")
	b.press("Save name")
	b.says("Your name was saved.")
	if got := b.text(".menu-user"); got != "Ada Example" {
		t.Errorf("the menu: got %q want the new name", got)
	}

	lost, kept := s.elsewhere(t, "ada@example.com"), s.elsewhere(t, "ada@example.com")
	b.visit("/app/account", http.StatusOK)
	b.says("Go-http-client/1.1")
	b.inspect("an account with sessions")
	b.load(clickIn("Go-http-client", "End")) // that which was used last
	b.says("The session was ended.")
	if lostIn, keptIn := lost.get("/app/").status == http.StatusOK, kept.get("/app/").status == http.StatusOK; lostIn == keptIn {
		t.Errorf("after one session was ended: got %t and %t want one of them in", lostIn, keptIn)
	}
	b.press("End all other sessions")
	b.says("All your other sessions were ended.")
	lost.wantIn("after the others were ended", false)
	kept.wantIn("after the others were ended", false)

	other := s.elsewhere(t, "ada@example.com")
	const next = "other words in another row"
	change := chromedp.Click(`//button[normalize-space()="Change password"]`)
	b.write("current", "these are not the words")
	b.write("password", next)
	if got := b.load(change); got != http.StatusUnprocessableEntity {
		t.Errorf("with a wrong password: got status %d want 422", got)
	}
	b.says("The current password is incorrect.")
	b.inspect("a wrong password")
	other.wantIn("after a wrong password", true)
	b.write("current", password)
	b.write("password", next)
	b.press("Change password")
	b.says("Your password was changed")
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
	b.says("No open invitations")
	b.write("email", "zoe@example.com")
	b.choose("role", "editor")
	b.press("Create invitation")
	link := invitationPath.FindString(b.text("pre.record"))
	if got := b.text(`section:nth-last-of-type(2) tbody`); !strings.Contains(got, "zoe@example.com") || !strings.Contains(got, "editor") {
		t.Errorf("the open invitations: got %q want zoe as editor", got)
	}
	b.inspect("an open invitation")
	if got := s.visitor(t).get(link); got.status != http.StatusOK {
		t.Errorf("the link: got status %d want 200", got.status)
	}
	b.load(clickIn("zoe@example.com", "Withdraw"))
	b.says("The invitation was withdrawn.")
	b.says("No open invitations")
	if got := s.visitor(t).get(link); got.status != http.StatusNotFound || !strings.Contains(got.body, "was withdrawn") {
		t.Errorf("the link that was withdrawn: got status %d want 404 and the reason", got.status)
	}
	b.visit("/app/settings/audit", http.StatusOK)
	b.says("withdrew an invitation")
}
