package web_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
)

// TestUnclaimedReports uploads a report about a domain that the team does not have. It counts
// nowhere until the team adds the domain, and the pages say so.
func TestUnclaimedReports(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.zone.zone = dnstest.New("")
	team := s.service.Team(s.team, service.CommandLine())
	record := func(from string) string { return recordXML("192.0.2.99", 5, "none", "pass", "pass", from, from) }
	upload := func(domain, id string, records ...string) string {
		report := aggregateXML("receiver.example", id, now.AddDate(0, 0, -1), records...)
		s.clock = s.clock.Add(time.Second)
		return "/app/reports/" + s.upload(t, team, id+".xml", strings.ReplaceAll(report, "<domain>"+sampleDomain+"</domain><adkim>", "<domain>"+domain+"</domain><adkim>")).String()
	}
	const (
		mark     = "Not counted: no domain of the team"
		sentence = "Not counted: other.example is not a domain of the team. The report counts once you add the domain."
		exclude  = "Exclude from counts"
	)
	path := upload("other.example", "foreign", record("other.example"))
	wantUnclaimed := func(when string, want bool) {
		t.Helper()
		if got := strings.Contains(s.body(t, viewer, "/app/reports"), mark); got != want {
			t.Errorf("%s, list: got it marked as unclaimed: %v, want %v", when, got, want)
		}
		if got := strings.Contains(s.body(t, viewer, "/app/reports?csv=reports"), mark); got != want {
			t.Errorf("%s, file: got it marked as unclaimed: %v, want %v", when, got, want)
		}
		body := s.body(t, editor, path)
		if got := strings.Contains(body, sentence); got != want {
			t.Errorf("%s, report: got it marked as unclaimed: %v, want %v", when, got, want)
		}
		if got := strings.Contains(body, exclude); got == want || !strings.Contains(body, "Delete report") {
			t.Errorf("%s, report: got the button %q: %v, want %v", when, exclude, got, !want)
		}
	}
	wantUnclaimed("foreign", true)
	found := s.body(t, viewer, "/app/reports?state=unclaimed")
	if !strings.Contains(found, "foreign") || strings.Contains(found, "2026-11-14.0123456789") || !strings.Contains(found, `<option value="unclaimed" selected>`) {
		t.Error("got other reports with the filter, want the unclaimed one")
	}
	if body := s.body(t, editor, "/app/reports/"+s.aggregate.String()); strings.Contains(body, "unclaimed") || !strings.Contains(body, exclude) {
		t.Error("got a report of the team's domain as unclaimed, want it counted")
	}
	musttest.Get(team.AddDomain(t.Context(), "other.example"))(t)
	wantUnclaimed("with the domain", false)

	musttest.Get(team.AddDomain(t.Context(), "mail.third.example"))(t)
	path = upload("third.example", "partly", record("mail.third.example"), record("www.third.example"))
	wantUnclaimed("partly counted", false)
}
