package insight_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// readScenario reads the 30 days of a history.
func readScenario(t *testing.T, s scenario) (*insight.Mail, insight.Domain) {
	t.Helper()
	m := musttest.Get(scenarioService(t).Read(t.Context(), s.reports(), "example.com", daysOf(20000, 20029)))(t)
	t.Cleanup(m.Close)
	s.facts.Domain = "example.com"
	about := insight.Domain{Name: "example.com", Facts: &s.facts, Classes: s.team}
	m.SetDomains(about)
	return m, about
}

// TestFiguresAreNotMixed simulates a policy on mail of every class.
func TestFiguresAreNotMixed(t *testing.T) {
	t.Parallel()
	s := inTrouble()
	s.mail = append(s.mail, broken("203.0.113.6", "selector1", 3), flow{source: "203.0.113.7", days: 2, perDay: 2, spf: "junk.example fail"})
	s.mail = append(s.mail, changing(10)...)
	m, about := readScenario(t, s)
	got := musttest.Get(m.Simulate(t.Context(), insight.Trial{Domain: about, Policy: insight.Policy{Record: dmarc.Record{P: dmarc.Reject}}}))(t)[0]
	// Those of 203.0.113.7 are in one network with the spoofer: nothing tells them apart.
	figures := fmt.Sprintf("%d %d %d %d %+v", got.Legitimate, got.Forwarder, got.Unknown, got.Spoofing, got.Effect)
	want := fmt.Sprintf("%d %d %d %d %+v", 30*700+300, 30*12, 30*75, 30*45+4,
		dmarcd.Effect{LegitimateAffected: 30*160 + 200, ForwarderAffected: 30 * 3, UnknownAffected: 30 * 75, SpoofingStopped: 30*45 + 4})
	if figures != want {
		t.Errorf("got %s, want %s", figures, want)
	}
	var all int64
	var lines []string
	for _, sender := range got.Senders {
		all += sender.Messages
		lines = append(lines, fmt.Sprintf("%s|%s|%s|%d/%d|%d", sender.Key, sender.Name, sender.Class, sender.Affected, sender.Messages, sender.Addresses))
		if (sender.Question != nil) != (sender.Key == "AS64497:as:shop.example") {
			t.Errorf("%s: got the question %+v", sender.Key, sender.Question)
		}
	}
	if diff := cmp.Diff([]string{
		"microsoft-365:yours|Microsoft 365 (yours)|service|0/16200|1",
		"AS64496:yours|Office (yours)|yours|4800/4800|1",
		"AS64497:as:shop.example|Rented Servers (as shop.example)|unknown|2250/2250|1",
		"AS64498:others|Access Provider (others)|spoofing|1354/1354|2",
		"AS64498:forwarding|Access Provider (forwarding)|forwarder|90/360|2",
		"AS64499:yours|Office Six (yours)|yours|200/300|1", // an IPv6 /64 is one
	}, lines); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if sum := got.Legitimate + got.Forwarder + got.Unknown + got.Spoofing; sum != all || sum != got.Observed.Delivered+got.Observed.Quarantined+got.Observed.Rejected {
		t.Errorf("got %d messages of %d, want all", sum, all)
	}
}

// TestQuestions checks what is asked about senders, and with which evidence.
func TestQuestions(t *testing.T) {
	t.Parallel()
	m, about := readScenario(t, scenario{
		own: []dmarcd.TeamSender{{Key: "shop", Name: "Shop", Domains: []string{"shop.example"}}},
		mail: []flow{
			office(100), sendgrid(20, "s1 sendgrid.net pass", "sendgrid.net pass"),
			{source: "198.51.100.77", first: 6, days: 24, perDay: 10, spf: "news.example pass"},
			{source: "198.51.100.78", perDay: 5, signed: "k a.shop.example pass"},
			{source: "198.51.100.19", perDay: 1, signed: "s2048 yahoo.com pass", spf: "yahoo.com pass"},
		},
	})
	got := musttest.Get(m.Simulate(t.Context(), insight.Trial{Domain: about, Policy: insight.Policy{Record: dmarc.Record{P: dmarc.Reject}}}))(t)[0]
	var lines []string
	for _, sender := range got.Senders {
		if q := sender.Question; q != nil {
			lines = append(lines, fmt.Sprintf("%s|%s|%s|%d|%d|%q", q.Key, q.Name, q.Text, q.Messages, q.Addresses, q.Evidence))
		}
	}
	if diff := cmp.Diff([]string{
		`sendgrid:rest|Twilio SendGrid (not aligned)|Does your company use Twilio SendGrid?|600|1|["600 messages in 30 days from 1 address, all authenticated as sendgrid.net."]`,
		`AS64497:as:news.example|Rented Servers (as news.example)|Does your company use news.example?|240|1|["240 messages in 24 days from 1 address, all authenticated as news.example."]`,
		`shop|Shop|Does your company use Shop?|150|1|["150 messages in 30 days from 1 address, all authenticated as shop.example."]`,
		`yahoo:as:yahoo.com|Yahoo (as yahoo.com)|Does your company use yahoo.com?|30|1|["30 messages in 30 days from 1 address, all authenticated as yahoo.com."]`,
	}, lines); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestClassesOfAddresses checks that an address has the class of its sender, and causes of its own.
func TestClassesOfAddresses(t *testing.T) {
	t.Parallel()
	m, _ := readScenario(t, scenario{
		mail: []flow{office(100), silent("192.0.2.2", 20), {source: "192.0.2.66", perDay: 10, spf: "junk.example fail"}, signedBy("192.0.2.67", "s1", 5)},
	})
	list := musttest.Get(m.List(t.Context(), insight.Query{Group: insight.GroupAddress, Limit: 10, Assess: true}))(t)
	var lines []string
	for _, row := range list.Rows {
		lines = append(lines, fmt.Sprintf("%s|%s|%s", row.Key, row.Assessment.Class, row.Assessment.Cause))
	}
	if diff := cmp.Diff([]string{
		"192.0.2.1|yours|",
		"192.0.2.2|yours|The SPF record of example.com does not list the address, and there is no DKIM signature for example.com.",
		"192.0.2.66|spoofing|SPF does not pass, and there is no DKIM signature for example.com.",
		"192.0.2.67|forwarder|",
	}, lines); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestMadeUpKeysHideNoOwnKey sends more broken signatures by keys that do not exist than are
// remembered, before the first mail of the owner.
func TestMadeUpKeysHideNoOwnKey(t *testing.T) {
	t.Parallel()
	s := scenario{senders: []string{"AS64496:yours", "AS64498:others"}, stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix}
	for i := range insight.MaxListed/2 + 1 {
		f := broken("203.0.113.66", fmt.Sprintf("madeup%d", i), 1)
		f.days = 1
		s.mail = append(s.mail, f)
	}
	s.mail = append(s.mail, signedBy("192.0.2.1", "s1", 50), silent("192.0.2.1", 5))
	s.want = []want{{"AS64496:yours", dmarcd.ClassYours, "", ""}, {"AS64498:others", dmarcd.ClassSpoofing, "", "-"}}
	s.check(t, scenarioService(t))
}

// TestManySendersHideNoFailure has a sender of the owner with fewer messages than a thousand
// others, which the team said are not its own.
func TestManySendersHideNoFailure(t *testing.T) {
	t.Parallel()
	s := scenario{
		team:  map[string]dmarcd.Class{"AS64499": dmarcd.ClassSpoofing},
		mail:  []flow{office(100), {source: "198.51.100.20", perDay: 2}}, // both are the owner's, the second by its name
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix, about: "AS64497:yours",
	}
	for i := range 1000 {
		s.mail = append(s.mail, flow{source: fmt.Sprintf("2001:db8:1:%x::1", i), days: 1, perDay: 100, spf: fmt.Sprintf("offer%d.example pass", i)})
	}
	s.check(t, scenarioService(t))
}
