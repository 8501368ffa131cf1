package web_test

import (
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
)

// TestUnansweredDNS shows a domain whose name servers do not answer: nothing is concluded.
func TestUnansweredDNS(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.zone.zone = dnstest.New("fail.example INCONCLUSIVE\n_dmarc.fail.example INCONCLUSIVE")
	musttest.Get(s.service.Team(s.team, service.CommandLine()).AddDomain(t.Context(), "fail.example"))(t)
	const domain = "/app/domains/fail.example"
	if location := s.post(owner, domain+"/dns", nil).Header().Get("Location"); location != domain+"/dns?done=domain-unanswered" {
		t.Errorf("after a check: got to %q, want a page that says that the DNS did not answer", location)
	}
	for path, texts := range map[string]struct{ want, not string }{
		"/dns?done=domain-unanswered": {"The DNS has not answered", "Not checked yet"},
		"/setup":                      {"Publish this record only if the domain has none", "not seen yet"},
		"":                            {">not known<", ">no record<"},
	} {
		body := s.body(t, owner, domain+path)
		if !strings.Contains(body, texts.want) || strings.Contains(body, texts.not) {
			t.Errorf("%s: want %q and not %q in\n%s", path, texts.want, texts.not, body)
		}
	}
}

// TestOnlyDMARCIsChecked shows a domain between the check of its DMARC record and that of all records.
func TestOnlyDMARCIsChecked(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.zone.zone = dnstest.New(`_dmarc.new.example TXT "v=DMARC1; p=none"`)
	musttest.Get(s.service.Team(s.team, service.CommandLine()).AddDomain(t.Context(), "new.example"))(t)
	body := s.body(t, owner, "/app/domains/new.example/dns")
	if !strings.Contains(body, "Only the DMARC record is checked yet") || strings.Contains(body, "has not answered") {
		t.Errorf("want that the other records are not checked yet in\n%s", body)
	}
}

// TestSetupWithoutReportDomain shows the guide that has reports sent to a mailbox.
func TestSetupWithoutReportDomain(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *service.Options) { o.ReportDomain = "" })
	s.zone.zone = dnstest.New("new.example MX 10 mx.new.example\nmx.new.example A 192.0.2.1")
	musttest.Get(s.service.Team(s.team, service.CommandLine()).AddDomain(t.Context(), "new.example"))(t)
	body := s.body(t, owner, "/app/domains/new.example/setup")
	for _, want := range []string{"v=DMARC1; p=none; rua=mailto:dmarc-reports@new.example<", "/app/settings/mailboxes", "DMARCD_REPORT_DOMAIN"} {
		if !strings.Contains(body, want) {
			t.Errorf("want %q in\n%s", want, body)
		}
	}
}

// TestAlertsWithoutChannels checks that an alert without a channel is shown as not sent.
func TestAlertsWithoutChannels(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	team := s.service.Team(s.team, service.CommandLine())
	for _, w := range musttest.Get(team.Webhooks(t.Context()))(t) {
		musttest.Do(t, team.RemoveWebhook(t.Context(), w.ID))
	}
	if location := s.post(owner, "/app/settings/notifications/test", nil).Header().Get("Location"); location != "/app/settings/notifications?done=alert-not-sent" {
		t.Errorf("got to %q, want a page that says that nothing was sent", location)
	}
	if body := s.body(t, owner, "/app/settings/notifications"); !strings.Contains(body, "Alerts are not sent to anyone") {
		t.Errorf("want that nothing is sent in\n%s", body)
	}
}

// TestFirstDay requests the first day that can be represented, without mail to compare with.
func TestFirstDay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const firstDay = "?from=1970-01-01&to=1970-01-01"
	for _, path := range []string{"/app/domains/" + sampleDomain, "/app/domains/" + sampleDomain + "/reports", "/app/senders"} {
		s.body(t, viewer, path+firstDay)
	}
	if body := s.body(t, viewer, "/app/"+firstDay); !strings.Contains(body, "No messages were reported in this period.") {
		t.Error("the overview of a day without mail has figures")
	}
}
