package insight_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/rollup"
	"github.com/dmarcd/dmarcd/internal/senders"
)

// microsoft is mail of a tenant of Microsoft 365, from an address that others use, too.
func microsoft(perDay int64, signed, spf string) flow {
	return flow{source: "198.51.100.16", perDay: perDay, signed: signed, spf: spf}
}

// sendgrid is mail from an address of SendGrid.
func sendgrid(perDay int64, signed, spf string) flow {
	return flow{source: "198.51.100.10", perDay: perDay, signed: signed, spf: spf}
}

// others is mail of an address as several other domains, on a day each.
func others(source string) (all []flow) {
	for i := range 9 {
		all = append(all, flow{source: source, first: i, days: 1, perDay: 5, spf: fmt.Sprintf("small%d.example pass", i)})
	}
	return all
}

// subdomains is mail of a tenant that signs for each of its subdomains, from two addresses.
func subdomains() (all []flow) {
	for i := range 12 {
		for at, source := range []string{"198.51.100.16", "198.51.100.22"} {
			from := fmt.Sprintf("dept%d.example.com", (i+6*at)%12)
			all = append(all, flow{source: source, perDay: 5, from: from, signed: "selector1 " + from + " pass", spf: "contoso.onmicrosoft.com pass"})
		}
	}
	return all
}

// divisionScenarios are about how the mail of a network is divided into senders.
var divisionScenarios = []scenario{
	{
		name: "own server and a spoofer in one network", mail: []flow{office(100), silent("192.0.2.66", 20)},
		senders: []string{"AS64496:others", "AS64496:yours"},
		want:    []want{{"AS64496:yours", dmarcd.ClassYours, "-", "-"}, {"AS64496:others", dmarcd.ClassSpoofing, "does not list the address", "-"}},
		stage:   dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name:    "own server and a spoofer at a hosting company",
		mail:    []flow{{source: "198.51.100.30", perDay: 50, spf: "example.com pass"}, silent("198.51.100.31", 20)},
		senders: []string{"hetzner:others", "hetzner:yours"},
		want:    []want{{"hetzner:yours", dmarcd.ClassService, "-", "-"}, {"hetzner:others", dmarcd.ClassSpoofing, "", "-"}},
		stage:   dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "all parts of one network", mail: []flow{
			office(100), silent("192.0.2.66", 20), signedBy("192.0.2.67", "s1", 5),
			{source: "192.0.2.68", perDay: 1, signed: "k news.example pass", spf: "news.example pass"},
			{source: "192.0.2.69", perDay: 1, spf: "list.example pass"},
		},
		senders: []string{"AS64496:as:list.example", "AS64496:as:news.example", "AS64496:forwarding", "AS64496:others", "AS64496:yours"},
		want: []want{
			{"AS64496:yours", dmarcd.ClassYours, "-", "-"},
			{"AS64496:others", dmarcd.ClassSpoofing, "", "-"},
			{"AS64496:forwarding", dmarcd.ClassForwarder, "-", "-"},
			{"AS64496:as:news.example", dmarcd.ClassUnknown, "the signature is for news.example", "Find out"},
			{"AS64496:as:list.example", dmarcd.ClassUnknown, "SPF passes for list.example", "Find out"},
		},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten, // each question is about 1 %
	},
	{
		name: "half carries a broken signature", mail: []flow{office(100), broken("203.0.113.6", "s1", 10), silent("203.0.113.6", 10)},
		senders: []string{"AS64496:yours", "AS64498:forwarding"}, want: []want{{"AS64498:forwarding", dmarcd.ClassForwarder, "", ""}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionAccept,
	},
	{
		name: "less than half carries a broken signature", mail: []flow{office(100), broken("203.0.113.6", "s1", 9), silent("203.0.113.6", 10)},
		senders: []string{"AS64496:yours", "AS64498:others"}, want: []want{{"AS64498:others", dmarcd.ClassSpoofing, "", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "a broken signature by a key that never passes", mail: []flow{office(100), broken("203.0.113.6", "madeup", 20)},
		senders: []string{"AS64496:yours", "AS64498:others"}, want: []want{{"AS64498:others", dmarcd.ClassSpoofing, "", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name:    "receivers mark one message in five as forwarded",
		mail:    []flow{office(100), {source: "203.0.113.5", perDay: 2, spf: "example.com fail", reasons: rollup.Forwarded}, silent("203.0.113.5", 8)},
		senders: []string{"AS64496:yours", "AS64498:forwarding"}, want: []want{{"AS64498:forwarding", dmarcd.ClassForwarder, "", ""}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionAccept,
	},
	{
		name:    "receivers mark fewer than one message in five as forwarded",
		mail:    []flow{office(100), {source: "203.0.113.5", perDay: 2, spf: "example.com fail", reasons: rollup.Forwarded}, silent("203.0.113.5", 9)},
		senders: []string{"AS64496:yours", "AS64498:others"}, want: []want{{"AS64498:others", dmarcd.ClassSpoofing, "", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "60 % authenticate as one other domain", mail: []flow{office(100), {source: "203.0.113.10", perDay: 12, spf: "news.example pass"}, silent("203.0.113.10", 8)},
		senders: []string{"AS64496:yours", "AS64498:as:news.example"}, want: []want{{"AS64498:as:news.example", dmarcd.ClassUnknown, "", "Find out"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionAnswer, about: "AS64498:as:news.example",
	},
	{
		name: "less than 60 % authenticate as one other domain", mail: []flow{office(100), {source: "203.0.113.10", perDay: 11, spf: "news.example pass"}, silent("203.0.113.10", 8)},
		senders: []string{"AS64496:yours", "AS64498:others"}, want: []want{{"AS64498:others", dmarcd.ClassSpoofing, "", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "two addresses of one other domain are one sender", mail: []flow{
			office(100), {source: "203.0.113.10", perDay: 12, spf: "a.news.example pass"}, {source: "203.0.113.11", perDay: 12, signed: "k b.news.example pass"},
		},
		senders: []string{"AS64496:yours", "AS64498:as:news.example"}, want: []want{{"AS64498:as:news.example", dmarcd.ClassUnknown, "", "Find out"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionAnswer, about: "AS64498:as:news.example",
	},
	{
		name: "fewer than 10 messages that authenticate as no domain", mail: []flow{office(100), {source: "203.0.113.12", days: 9, perDay: 1, spf: "junk.example fail"}},
		want:  []want{{"AS64498:others", dmarcd.ClassUnknown, "", "Find out"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "10 messages that authenticate as no domain", mail: []flow{office(100), {source: "203.0.113.12", days: 10, perDay: 1, spf: "junk.example fail"}},
		want:  []want{{"AS64498:others", dmarcd.ClassSpoofing, "", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "one other domain after many others", mail: append(
			append([]flow{office(100)}, others("203.0.113.10")...), flow{source: "203.0.113.10", first: 9, days: 21, perDay: 20, spf: "news.example pass"},
		),
		senders: []string{"AS64496:yours", "AS64498:as:news.example"}, want: []want{{"AS64498:as:news.example", dmarcd.ClassUnknown, "", "Find out"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionAnswer, about: "AS64498:as:news.example",
	},
	{
		name: "first seen 8 days before the end", mail: []flow{office(100), {source: "203.0.113.11", first: 22, days: 8, perDay: 50, spf: "example.com softfail"}},
		want:  []want{{"AS64498:others", dmarcd.ClassSpoofing, "", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "seen again after two months", mail: []flow{office(100), {source: "203.0.113.11", first: -40, days: 1, perDay: 50, spf: "example.com softfail"}, {source: "203.0.113.11", first: 26, days: 4, perDay: 50, spf: "example.com softfail"}},
		want:  []want{{"AS64498:others", dmarcd.ClassSpoofing, "", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "Microsoft 365, aligned by SPF, beside other tenants", facts: includes("spf.protection.outlook.com"),
		mail:    []flow{microsoft(80, "selector1 contoso.onmicrosoft.com pass", "example.com pass"), microsoft(20, "selector1 fabrikam.example pass", "fabrikam.example pass")},
		senders: []string{"microsoft-365:as:fabrikam.example", "microsoft-365:yours"},
		want: []want{
			{"microsoft-365:yours", dmarcd.ClassService, "-", "-"},
			{"microsoft-365:as:fabrikam.example", dmarcd.ClassUnknown, "the signature is for fabrikam.example", "Find out"},
		},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionAnswer, about: "microsoft-365:as:fabrikam.example",
	},
	{
		name: "Microsoft 365, aligned by DKIM alone, beside other tenants",
		mail: []flow{
			microsoft(100, "selector1 example.com pass", "contoso.onmicrosoft.com pass"),
			microsoft(1, "selector1 fabrikam.example pass", "fabrikam.example pass"), microsoft(1, "selector1 northwind.example pass", "northwind.example pass"),
		},
		senders: []string{"microsoft-365:as:fabrikam.example", "microsoft-365:as:northwind.example", "microsoft-365:yours"},
		want:    []want{{"microsoft-365:yours", dmarcd.ClassService, "-", "-"}},
		stage:   dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "Microsoft 365, aligned on one address in twenty messages, beside a large tenant",
		mail: []flow{
			microsoft(5, "selector1 example.com pass", "contoso.onmicrosoft.com pass"), microsoft(95, "selector1 fabrikam.example pass", "fabrikam.example pass"),
		},
		team:    map[string]dmarcd.Class{"microsoft-365:as:fabrikam.example": dmarcd.ClassSpoofing},
		senders: []string{"microsoft-365:as:fabrikam.example", "microsoft-365:yours"},
		want:    []want{{"microsoft-365:yours", dmarcd.ClassService, "-", "-"}, {"microsoft-365:as:fabrikam.example", dmarcd.ClassSpoofing, "", "-"}},
		stage:   dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name:    "Microsoft 365, mail of a linked address that authenticates as no domain",
		mail:    []flow{microsoft(80, "selector1 example.com pass", "example.com pass"), microsoft(20, "", "example.com softfail")},
		senders: []string{"microsoft-365:yours"}, want: []want{{"microsoft-365:yours", dmarcd.ClassService, "does not list the address", "selector1._domainkey"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix, about: "microsoft-365:yours",
	},
	{
		name: "Microsoft 365, signed for many subdomains", mail: subdomains(), senders: []string{"microsoft-365:yours"},
		want:  []want{{"microsoft-365:yours", dmarcd.ClassService, "-", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name:    "a gateway that other customers use",
		mail:    []flow{{source: "198.51.100.32", perDay: 80, signed: "s1 example.com pass", spf: "example.com pass"}, {source: "198.51.100.32", perDay: 20, spf: "fabrikam.example pass"}},
		senders: []string{"proofpoint:as:fabrikam.example", "proofpoint:yours"},
		want:    []want{{"proofpoint:yours", dmarcd.ClassService, "-", "-"}, {"proofpoint:as:fabrikam.example", dmarcd.ClassUnknown, "", "Find out"}},
		stage:   dmarcd.StageMonitoring, action: dmarcd.ActionAnswer, about: "proofpoint:as:fabrikam.example",
	},
	{
		name:    "forwarding through a mailbox provider that breaks the signature",
		mail:    []flow{office(100), {source: "198.51.100.15", perDay: 3, signed: "s1 example.com fail, 20230601 gmail.com pass", spf: "gmail.com pass"}},
		senders: []string{"AS64496:yours", "google:forwarding"}, want: []want{{"google:forwarding", dmarcd.ClassForwarder, "does not verify", ""}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionAccept,
	},
	{
		name: "forwarding and a personal mailbox at one mailbox provider", mail: []flow{
			office(100),
			{source: "198.51.100.15", perDay: 3, signed: "s1 example.com pass", spf: "gmail.com pass"},
			{source: "198.51.100.15", perDay: 1, signed: "20230601 gmail.com pass", spf: "gmail.com pass"},
		},
		senders: []string{"AS64496:yours", "google:as:gmail.com", "google:forwarding"},
		want:    []want{{"google:forwarding", dmarcd.ClassForwarder, "-", "-"}, {"google:as:gmail.com", dmarcd.ClassUnknown, "", "Find out"}},
		stage:   dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "a spoofer with an account at the service that the owner uses",
		mail: []flow{office(100), sendgrid(50, "s1 example.com pass", "em.example.com pass"), sendgrid(20, "s1 sendgrid.net pass", "sendgrid.net pass")},
		// The SPF record includes the service, but the owner's own mail is aligned.
		facts: includes("sendgrid.net"), senders: []string{"AS64496:yours", "sendgrid", "sendgrid:rest"},
		want:     []want{{"sendgrid", dmarcd.ClassService, "-", "-"}, {"sendgrid:rest", dmarcd.ClassUnknown, "the signature is for sendgrid.net", "Find out"}},
		evidence: map[string]string{"sendgrid:rest": "Other mail from Twilio SendGrid is aligned with your domain."},
		stage:    dmarcd.StageMonitoring, action: dmarcd.ActionAnswer, about: "sendgrid:rest",
	},
	{
		name: "a spoofer at the service that the owner uses, after the answer",
		mail: []flow{office(100), sendgrid(50, "s1 example.com pass", "em.example.com pass"), sendgrid(20, "s1 sendgrid.net pass", "sendgrid.net pass")},
		team: map[string]dmarcd.Class{"sendgrid:rest": dmarcd.ClassSpoofing}, senders: []string{"AS64496:yours", "sendgrid", "sendgrid:rest"},
		want:  []want{{"sendgrid", dmarcd.ClassService, "-", "-"}, {"sendgrid:rest", dmarcd.ClassSpoofing, "the signature is for sendgrid.net", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "a service with a broken signature by a key that passed there two months ago",
		mail: []flow{
			office(100),
			{source: "198.51.100.10", first: -30, days: 1, perDay: 50, signed: "sg example.com pass", spf: "sendgrid.net pass"},
			sendgrid(20, "sg example.com permerror", "sendgrid.net pass"),
		},
		facts: dkimFacts("sg", "none"), senders: []string{"AS64496:yours", "sendgrid"},
		want:  []want{{"sendgrid", dmarcd.ClassService, "the key sg._domainkey.example.com is missing", "Publish the key sg._domainkey.example.com"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix, about: "sendgrid",
	},
	{
		name: "a service with a broken signature by a key that passes elsewhere", mail: []flow{office(100), sendgrid(20, "s1 example.com fail, k sendgrid.net pass", "sendgrid.net pass")},
		senders: []string{"AS64496:yours", "sendgrid:rest"}, want: []want{{"sendgrid:rest", dmarcd.ClassUnknown, "", "Find out"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionAnswer, about: "sendgrid:rest",
	},
	{
		name: "a service by its signature, whose key is gone", facts: dkimFacts("zendesk1", "none"), mail: []flow{
			office(100), // the address has no host name
			{source: "198.51.100.77", perDay: 20, days: 15, signed: "zendesk1 example.com pass", spf: "zendesk.com pass"},
			{source: "198.51.100.77", perDay: 20, first: 15, days: 15, signed: "zendesk1 example.com permerror", spf: "zendesk.com pass"},
		},
		senders: []string{"AS64496:yours", "zendesk"},
		want:    []want{{"zendesk", dmarcd.ClassService, "the key zendesk1._domainkey.example.com is missing", "Publish the key"}},
		stage:   dmarcd.StageMonitoring, action: dmarcd.ActionFix, about: "zendesk",
	},
}

// classifiedScenarios are about addresses, networks and parts that the team classified.
var classifiedScenarios = []scenario{
	{
		name: "a classified address and a classified network", team: map[string]dmarcd.Class{"192.0.2.7": dmarcd.ClassSpoofing, "192.0.2.0/24": dmarcd.ClassYours},
		mail:     []flow{office(100), silent("192.0.2.7", 20), silent("192.0.2.8", 20), silent("203.0.113.9", 20)},
		senders:  []string{"192.0.2.0/24", "192.0.2.7", "AS64498:others"},
		want:     []want{{"192.0.2.7", dmarcd.ClassSpoofing, "", "-"}, {"192.0.2.0/24", dmarcd.ClassYours, "does not list the address", "Add the address"}},
		evidence: map[string]string{"192.0.2.7": "Your team set this class.", "192.0.2.0/24": "Your team set this class."},
		stage:    dmarcd.StageMonitoring, action: dmarcd.ActionFix, about: "192.0.2.0/24",
	},
	{
		name: "a classified IPv6 network", team: map[string]dmarcd.Class{"2001:db8:0:1::/64": dmarcd.ClassForwarder}, accepted: 300,
		mail: append(changing(0), office(100)), senders: []string{"2001:db8:0:1::/64", "AS64496:yours"},
		want:  []want{{"2001:db8:0:1::/64", dmarcd.ClassForwarder, "", "Sign all your mail with DKIM"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "a classified address of a service", team: map[string]dmarcd.Class{"198.51.100.10": dmarcd.ClassYours},
		mail:    []flow{office(100), sendgrid(20, "s1 sendgrid.net pass", "sendgrid.net pass")},
		senders: []string{"198.51.100.10", "AS64496:yours"}, want: []want{{"198.51.100.10", dmarcd.ClassYours, "the signature is for sendgrid.net", ""}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix, about: "198.51.100.10",
	},
	{
		name: "the class of a part wins over that of the network", team: map[string]dmarcd.Class{"AS64496": dmarcd.ClassYours, "AS64496:others": dmarcd.ClassSpoofing},
		mail:  []flow{office(100), silent("192.0.2.66", 20), {source: "192.0.2.67", perDay: 5, spf: "news.example pass"}},
		want:  []want{{"AS64496:others", dmarcd.ClassSpoofing, "", "-"}, {"AS64496:as:news.example", dmarcd.ClassYours, "", "Send with an envelope address at example.com"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix, about: "AS64496:as:news.example",
	},
}

// TestWithoutNetworks divides mail without a database of networks: all is that of unknown ones.
func TestWithoutNetworks(t *testing.T) {
	t.Parallel()
	service := insight.New(&senders.Atlas{}, senders.NewCatalogue(senders.Known()), hostNames, nil)
	scenario{
		mail: []flow{
			office(100), silent("203.0.113.9", 20), signedBy("203.0.113.5", "s1", 5), {source: "203.0.113.10", perDay: 1, spf: "news.example pass"}, sendgrid(50, "s1 example.com pass", "em.example.com pass"),
		},
		senders: []string{"-:as:news.example", "-:forwarding", "-:others", "-:yours", "sendgrid"},
		want: []want{
			{"-:yours", dmarcd.ClassYours, "-", "-"},
			{"-:others", dmarcd.ClassSpoofing, "", "-"},
			{"-:forwarding", dmarcd.ClassForwarder, "-", "-"},
			{"-:as:news.example", dmarcd.ClassUnknown, "", "Find out"},
			{"sendgrid", dmarcd.ClassService, "-", "-"},
		},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	}.check(t, service)
}

// TestEveryViewHasTheSameSenders reads periods that end on the same day: the links, and with
// them the senders, do not depend on the first day.
func TestEveryViewHasTheSameSenders(t *testing.T) {
	t.Parallel()
	service := scenarioService(t)
	of := scenario{mail: []flow{{source: "192.0.2.1", first: -31, days: 10, perDay: 50, spf: "example.com pass"}, silent("192.0.2.1", 10), signedBy("203.0.113.5", "s1", 2)}}.reports()
	for _, days := range []dmarcd.Days{daysOf(20029, 20029), daysOf(20023, 20029), daysOf(20000, 20029), daysOf(19940, 20029), daysOf(19900, 20029), {}} {
		m := musttest.Get(service.Read(t.Context(), of, "example.com", days))(t)
		list := musttest.Get(m.List(t.Context(), insight.Query{Group: insight.GroupSender, Limit: 10, Sort: "name"}))(t)
		m.Close()
		var got []string
		for _, row := range list.Rows {
			got = append(got, row.Key)
		}
		if want := []string{"AS64498:yours", "AS64496:yours"}; !slices.Equal(got, want) {
			t.Errorf("%v: got %q, want %q", days, got, want)
		}
	}
}
