package web_test

import (
	"fmt"
	"html"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
)

// TestFailureReportsHaveTheirOwnRetention checks that the page does not promise failure reports
// for as long as records: the operator sets how long they are stored.
func TestFailureReportsHaveTheirOwnRetention(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, user := range []string{viewer, owner} {
		body := html.UnescapeString(s.body(t, user, "/app/settings/retention"))
		if !strings.Contains(body, "The operator sets how long failure and rejected reports are stored;") {
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
		if got := strings.Contains(body, "This team has no API access") && strings.Contains(body, `<code>dmarcd team allow "Second &lt;Team&gt;"</code>`); got == allowed {
			t.Errorf("the API is allowed: %v: got a notice: %v, want it only for a team without the API", allowed, got)
		}
	}
}

// TestTokensOfAFormerMember offers the tokens that a removed member created for revocation.
func TestTokensOfAFormerMember(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	user := musttest.Get(dmarcd.ParseUserID(s.member))(t)
	remove := "/app/settings/members/" + s.member + "/remove"
	musttest.Get(s.store.Team(s.team).CreateToken(t.Context(), store.NewToken{Name: "nightly", Scope: dmarcd.ScopeRead, CreatedBy: user}))(t)
	if where := s.post(owner, remove, nil).Header().Get("Location"); where != "/app/settings/tokens?done=member-tokens" {
		t.Fatalf("got to %s, want the tokens", where)
	}
	if body := s.body(t, owner, "/app/settings/tokens"); strings.Count(body, ", no longer a member") != 1 {
		t.Errorf("want one token of a former member:\n%s", body)
	}
}

// TestTextsAreTrue reads single sentences of pages.
func TestTextsAreTrue(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	team := s.service.Team(s.team, service.CommandLine())
	s.zone.zone = dnstest.New("_dmarc.parked.example TXT \"v=DMARC1; p=reject\"\nparked.example TXT \"v=spf1 -all\"\nparked.example MX 0 .")
	musttest.Get(team.AddDomain(t.Context(), "parked.example"))(t)
	musttest.Do(t, team.SetParked(t.Context(), "parked.example", true))
	musttest.Do(t, team.Examine(t.Context(), "parked.example"))
	spoofed := aggregateXML("bigmail.example", "parked", now.AddDate(0, 0, -1), recordXML("192.0.2.99", 5, "quarantine", "fail", "fail", sampleDomain, "bulk.example.net"))
	s.upload(t, team, "parked.xml", strings.ReplaceAll(spoofed, sampleDomain, "parked.example"))
	webhook := musttest.Get(dmarcd.ParseWebhookID(s.webhook))(t)
	delivery := musttest.Get(s.store.Team(s.team).TestWebhook(t.Context(), webhook, time.Minute))(t)
	delivery.Delivery.Test = false // whose failures do not count
	musttest.Do(t, s.store.Team(s.team).SaveDelivery(t.Context(), delivery, dmarcd.DeliveryResult{At: s.clock, Problem: "It failed."}, time.Time{}, "", time.Hour))
	invitation, secret := auth.NewInvitation()
	musttest.Do(t, s.store.CreateInvitation(t.Context(), secret, dmarcd.Invitation{Email: viewer, ExpiresAt: s.clock.Add(time.Hour)}))
	for _, row := range []struct{ path, want, not string }{
		{"/app/settings/notifications", "<small>It failed.</small>", "webhook:"},
		{"/app/settings/members", "owner: also deletes domains, manages members and settings", ""},
		{"/app/domains/parked.example", "its policy asks receivers to reject all mail that uses this name", "protected: receivers reject"},
	} {
		if body := s.body(t, owner, row.path); !strings.Contains(body, row.want) || row.not != "" && strings.Contains(body, row.not) {
			t.Errorf("%s: got no %q, or %q, want the first alone", row.path, row.want, row.not)
		}
	}
	if body := s.body(t, "", "/app/invitation/"+invitation); !strings.Contains(body, "Choose a new password for it.") {
		t.Error("invitation: got a password replaced, want no claim that there is one")
	}
}

// TestFindingsThatEnd breaks SPF. The finding that SPF is valid ends with it, which resolves
// nothing.
func TestFindingsThatEnd(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	history := html.UnescapeString(s.body(t, viewer, "/app/domains/example.com/changes"))
	if strings.Contains(history, "(good)") || strings.Contains(history, "Resolved finding") {
		t.Error("changes of the domain: got a good finding, or a resolved one, want neither")
	}
	for _, path := range []string{"/app/activity/everything"} {
		body := s.body(t, viewer, path)
		if !strings.Contains(body, "This problem ended: “example.com is not protected") || strings.Contains(body, "Resolved") || strings.Contains(body, "finding resolved") {
			t.Errorf("%s: got a finding called resolved, want a problem that ended", path)
		}
	}
}

// TestComparisonNeedsTheWholePreviousPeriod compares with a previous period only if reports
// were received in the week before it, or on its first day.
func TestComparisonNeedsTheWholePreviousPeriod(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	team := s.service.Team(s.team, service.CommandLine())
	wantNote := func(when string, want bool) {
		t.Helper()
		for _, path := range []string{"/app/", "/app/print", "/app/domains/example.com", "/app/domains/example.com/print"} {
			if got := strings.Contains(s.body(t, viewer, path+"?days=7"), "previous 7 days"); got != want {
				t.Errorf("%s, %s: got a comparison: %v, want %v", when, path, got, want)
			}
		}
	}
	day := func(ago int) { // the previous period is 13 to 7 days ago
		begin := now.AddDate(0, 0, -ago).Truncate(24 * time.Hour)
		s.upload(t, team, "r.xml", aggregateXML("bigmail.example", fmt.Sprint("before-", ago), begin, recordXML("192.0.2.17", 7, "none", "pass", "pass", sampleDomain, sampleDomain)))
		s.clock = s.clock.Add(time.Second)
	}
	wantNote("no earlier reports", false)
	day(8)
	wantNote("reports of a part of the period", false)
	day(20)
	wantNote("reports since before the period", true)
}
