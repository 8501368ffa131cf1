package insight_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// rented is mail of a rented server without any authentication.
func rented(source string) flow {
	return flow{source: source, perDay: 50, spf: "elsewhere.example fail"}
}

// teamScenarios are about senders that the team added or corrected.
var teamScenarios = []scenario{
	{
		name: "a sender of the team, by its network",
		own:  []dmarcd.TeamSender{{Key: "our-crm", Name: "Our CRM", Class: dmarcd.ClassYours, Networks: []netip.Prefix{netip.MustParsePrefix("198.51.100.64/26")}}},
		mail: []flow{office(100), rented("198.51.100.77"), rented("198.51.100.200")},
		want: []want{
			{"our-crm", dmarcd.ClassYours, "there is no DKIM signature", "Sign with DKIM for example.com"},
			{"AS64497:others", dmarcd.ClassSpoofing, "there is no DKIM signature", "-"},
		},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name: "the narrowest network counts",
		own: []dmarcd.TeamSender{
			{Key: "all", Name: "All", Class: dmarcd.ClassYours, Networks: []netip.Prefix{netip.MustParsePrefix("198.0.0.0/8")}},
			{Key: "one", Name: "One", Class: dmarcd.ClassSpoofing, Networks: []netip.Prefix{netip.MustParsePrefix("198.51.100.77/32")}},
		},
		mail:  []flow{office(100), rented("198.51.100.77"), rented("198.51.100.200")},
		want:  []want{{"one", dmarcd.ClassSpoofing, "", "-"}, {"all", dmarcd.ClassYours, "", "Sign with DKIM"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name: "a network of the team wins over the catalogue",
		own:  []dmarcd.TeamSender{{Key: "our-crm", Name: "Our CRM", Class: dmarcd.ClassYours, Networks: []netip.Prefix{netip.MustParsePrefix("198.51.100.10/32")}}},
		mail: []flow{office(100), {source: "198.51.100.10", perDay: 50, signed: "s1 groups.io pass", spf: "sendgrid.net pass"}},
		want: []want{{"our-crm", dmarcd.ClassYours, "the signature is for groups.io", "Sign with DKIM for example.com instead of groups.io."}},

		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name: "a sender of the team, by a domain that passes",
		own:  []dmarcd.TeamSender{{Key: "shop", Name: "Shop", Domains: []string{"shop.example"}}},
		mail: []flow{
			office(100),
			{source: "203.0.113.5", perDay: 20, signed: "k a.shop.example pass", spf: "a.shop.example pass"},
			{source: "203.0.113.6", perDay: 20, signed: "k shop.example fail", spf: "shop.example fail"},
		},
		want: []want{
			{"shop", dmarcd.ClassUnknown, "the signature is for shop.example", "Find out whether it sends for you"},
			{"AS64498:others", dmarcd.ClassSpoofing, "", "-"},
		},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionAnswer,
	},
	{
		name: "a forwarder of the team, by its host",
		own:  []dmarcd.TeamSender{{Key: "school", Name: "School", Class: dmarcd.ClassForwarder, Hosts: []string{"mx.example.com"}}},
		mail: []flow{office(100), {source: "198.51.100.20", perDay: 20, spf: "example.com fail"}},
		want: []want{{"school", dmarcd.ClassForwarder, "there is no DKIM signature", "Sign all your mail with DKIM"}},

		stage: dmarcd.StageMonitoring, action: dmarcd.ActionAccept,
	},
	{
		name: "a known service with another name",
		own:  []dmarcd.TeamSender{{Key: "sendgrid", Name: "Shop newsletter"}},
		mail: []flow{office(100), {source: "198.51.100.10", perDay: 50, signed: "s1 sendgrid.net pass", spf: "sendgrid.net pass"}},
		want: []want{{"sendgrid:rest", dmarcd.ClassUnknown, "the signature is for sendgrid.net", ""}},

		stage: dmarcd.StageMonitoring, action: dmarcd.ActionAnswer, about: "sendgrid:rest",
	},
	{
		name: "the class of a domain wins over that of the sender",
		own:  []dmarcd.TeamSender{{Key: "AS64497", Name: "Data centre", Class: dmarcd.ClassYours}},
		team: map[string]dmarcd.Class{"AS64497": dmarcd.ClassSpoofing},
		mail: []flow{office(100), rented("198.51.100.77")},
		want: []want{{"AS64497:others", dmarcd.ClassSpoofing, "", "-"}},

		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
}

// TestNamesOfTheTeam checks the names that a team gives senders, and that another team does
// not see them.
func TestNamesOfTheTeam(t *testing.T) {
	t.Parallel()
	service := scenarioService(t)
	s := scenario{
		own: []dmarcd.TeamSender{{Key: "sendgrid", Name: "Shop newsletter"}, {Key: "AS64497", Name: "Data centre"}},
		mail: []flow{
			{source: "198.51.100.77", perDay: 30, spf: "elsewhere.example fail"},
			{source: "198.51.100.10", perDay: 20, signed: "s1 sendgrid.net pass"},
		},
	}
	read := func(of *team) (rows []string) {
		m := musttest.Get(service.Read(t.Context(), of, "example.com", dmarcd.Days{}))(t)
		defer m.Close()
		list := musttest.Get(m.List(t.Context(), insight.Query{Group: insight.GroupSender, Limit: 10, Assess: true}))(t)
		for _, row := range list.Rows {
			rows = append(rows, strings.Join([]string{row.Key, row.Name, row.Detail, row.Assessment.Evidence[0]}, "|"))
		}
		return rows
	}
	reports := s.reports()
	if got, want := read(reports), []string{
		"AS64497:others|Data centre (others)|named by your team|Your team named this sender.",
		"sendgrid:rest|Shop newsletter (not aligned)|transactional|Shop newsletter is a known sender: transactional.",
	}; !slices.Equal(got, want) {
		t.Errorf("got %q want %q", got, want)
	}
	reports.own = nil
	if got, want := read(reports), []string{
		"AS64497:others|Rented Servers (others)||0 of 900 messages pass DMARC.",
		"sendgrid:rest|Twilio SendGrid (not aligned)|transactional|Twilio SendGrid is a known sender: transactional.",
	}; !slices.Equal(got, want) {
		t.Errorf("another team: got %q want %q", got, want)
	}
}

// TestSenderOfSeveralDomains assesses senders for each domain of a team.
func TestSenderOfSeveralDomains(t *testing.T) {
	t.Parallel()
	reports := scenario{mail: []flow{
		office(100),
		{source: "192.0.2.1", from: "shop.example", perDay: 50, spf: "shop.example fail"},
		{source: "203.0.113.5", from: "shop.example", perDay: 20, spf: "elsewhere.example fail"},
		rented("198.51.100.77"),
		{source: "198.51.100.77", from: "shop.example", perDay: 10, spf: "shop.example fail"},
	}}.reports()
	ids := map[string]dmarcd.DomainID{"example.com": 1, "shop.example": 2}
	for i, share := range reports.Shares {
		reports.Shares[i].Domain = ids[share.From]
	}
	m := musttest.Get(scenarioService(t).Read(t.Context(), reports, "", dmarcd.Days{}))(t)
	defer m.Close()
	m.SetDomains(insight.Domain{ID: 1, Name: "example.com", Classes: map[string]dmarcd.Class{"AS64497": dmarcd.ClassYours}}, insight.Domain{ID: 2, Name: "shop.example"})
	list, err := m.List(t.Context(), insight.Query{Group: insight.GroupSender, Limit: 10, Assess: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range list.Rows {
		a := row.Assessment
		got = append(got, strings.Join([]string{row.Key, string(a.Class), a.Evidence[0], a.Cause}, "|"))
	}
	if want := []string{
		"AS64496:yours|yours|3,000 of 3,000 messages pass DMARC.|",
		"AS64497:others|yours|Yours for example.com; spoofs shop.example.|SPF does not pass, and there is no DKIM signature for example.com.",
		"AS64496:others|spoofing|0 of 1,500 messages pass DMARC.|The SPF record of shop.example does not list the address, and there is no DKIM signature for shop.example.",
		"AS64498:others|spoofing|0 of 600 messages pass DMARC.|SPF does not pass, and there is no DKIM signature for shop.example.",
	}; !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
