package browser_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/dmarcd/dmarcd/test/daemon"
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

// TestDomainsOfAllTeams has a member of two teams find the domains of both in one list, by two clicks and
// a filter, and open one: its team is selected then. A team that the person has left is not there.
func TestDomainsOfAllTeams(t *testing.T) {
	t.Parallel()
	s := serve(t, `_dmarc.first.example. TXT "v=DMARC1; p=reject; rua=mailto:a@first.example"`)
	for team, domains := range map[string][]string{"default": {"first.example"}, "second": {"second.example", "shop.example"}, "third": {"third.example"}} {
		if team != "default" {
			s.run("team", "create", team)
		}
		s.run(append([]string{"domain", "add", "--team", team}, domains...)...)
	}
	b := s.open(t)
	b.acceptInvitation(s.link, "ada@example.com")
	for _, team := range []string{"second", "third"} {
		b.visit(s.invite("ada@example.com", team, "viewer"), http.StatusOK)
		b.press("Join team")
	}
	b.do(chromedp.Click(chromedp.CSS("details.menu > summary"))) // the first click
	b.follow("Domains of all your teams")                        // the second
	b.shows("of 4 domains in 3 teams")
	for _, want := range []string{"first.example", "second.example", "shop.example", "third.example"} {
		b.shows(want)
	}
	b.inspect("domains of all teams")

	b.do(chromedp.SetValue(chromedp.CSS(`#team`), "second"))
	b.do(evaluate[chromedp.Void](`void document.querySelector("#team").dispatchEvent(new Event("input", { bubbles: true }))`))
	daemon.Eventually(t, guideLimit, "the list has only the domains of a team", func() bool { return !strings.Contains(b.text("[data-result]"), "first.example") })
	if path := b.path(); path != "/app/teams?team=second" {
		t.Errorf("after the choice of a team: got %s, want the filter in the address", path)
	}
	b.shows("shop.example")
	b.press("shop.example")
	b.shows("Switched to second.")
	if path := b.path(); path != "/app/domains/shop.example" {
		t.Errorf("after the name of a domain: got %s, want its page", path)
	}

	// Without a script: the page, its file and the filter.
	member := s.member(t, s.invite("bob@example.com", "default", "viewer"), "bob@example.com")
	if got := member.get("/app/teams"); got.status != http.StatusOK || !strings.Contains(got.body, "first.example") || strings.Contains(got.body, "second.example") {
		t.Errorf("a member of one team: got status %d, want its domains alone", got.status)
	}
	owner := s.open(t)
	owner.acceptInvitation(s.invite("cy@example.com", "third", "owner"), "cy@example.com")
	owner.visit("/app/settings/members", http.StatusOK)
	owner.load(clickIn("ada@example.com", "Remove"))
	owner.shows("The member was removed")
	b.visit("/app/teams", http.StatusOK)
	b.shows("of 3 domains in 2 teams")
	if text := b.text("main"); strings.Contains(text, "third") {
		t.Errorf("after leaving a team: got %q, want nothing of it", text)
	}
}
