package browser_test

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
)

// clickIn clicks the button with a text in the row of a table that has another text.
func clickIn(row, button string) chromedp.Action[chromedp.Void] {
	return chromedp.Click(`//tr[contains(., "` + row + `")]//button[normalize-space()="` + button + `"]`)
}

func TestMembersSwitchTeamsAndRolesEnd(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.run("team", "create", "second", "--api")
	s.run("domain", "add", "--team", "default", "first.example")
	s.run("domain", "add", "--team", "second", "second.example")

	owner := s.open(t)
	owner.acceptInvitation(s.link, "ada@example.com")
	owner.visit("/app/settings/members", http.StatusOK)
	owner.write("email", "vera@example.com")
	owner.choose("role", "viewer")
	owner.press("Create invitation")
	link := invitationPath.FindString(owner.text("pre.record"))
	if link == "" {
		t.Fatalf("got no link want one: %s", owner.summary())
	}

	owner.inspect("a new link")

	vera := s.open(t)
	vera.acceptInvitation(link, "vera@example.com")
	vera.shows("first.example")
	if vera.has("details.menu form[action='/app/team']") {
		t.Error("a member of one team: got a choice of teams want none")
	}
	for _, path := range []string{
		"/app/", "/app/domains/first.example/dns", "/app/domains/first.example/settings", "/app/reports",
		"/app/settings/tokens", "/app/settings/members", "/app/settings/mailboxes", "/app/settings/notifications", "/app/settings/retention",
	} {
		vera.visit(path, http.StatusOK)
		if vera.has("main form[method=post]") {
			t.Errorf("%s for a viewer: got a form that changes something want none", path)
		}
	}
	vera.visit("/app/reports/upload", http.StatusForbidden)
	vera.shows("Your role does not allow this")
	vera.visit("/app/domains/second.example", http.StatusNotFound)

	// A person who is known joins another team as they are, and is its editor.
	vera.visit(s.invite("vera@example.com", "second", "editor"), http.StatusOK)
	vera.shows("You join as vera@example.com")
	vera.press("Join team")
	vera.do(chromedp.Click(chromedp.CSS("details.menu > summary")))
	vera.inspect("the open menu")
	vera.press("default")
	vera.shows("first.example")
	vera.do(chromedp.Click(chromedp.CSS("details.menu > summary")))
	vera.press("second")
	vera.shows("Switched to second.")
	vera.shows("second.example")
	vera.visit("/app/reports/upload", http.StatusOK)
	vera.visit("/app/domains/first.example", http.StatusNotFound)
	vera.visit("/app/settings/audit", http.StatusForbidden)

	owner.visit("/app/settings/members", http.StatusOK)
	owner.load(clickIn("vera@example.com", "Remove"))
	owner.shows("The member was removed")
	vera.visit("/app/", http.StatusOK)
	vera.do(chromedp.Click(chromedp.CSS("details.menu > summary")))
	if vera.has("details.menu form[action='/app/team']") {
		t.Error("after she was removed: got a choice of teams want none")
	}
}
