package insight_test

import (
	"fmt"
	"net/netip"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

// silent is mail that authenticates as no domain.
func silent(source string, perDay int64) flow {
	return flow{source: source, perDay: perDay, spf: "example.com softfail"}
}

// signedBy is mail that passes by the signature of a key alone.
func signedBy(source, selector string, perDay int64) flow {
	return flow{source: source, perDay: perDay, signed: selector + " example.com pass", spf: "bounce.example.net fail"}
}

// broken is mail whose signature does not verify.
func broken(source, selector string, perDay int64) flow {
	return flow{source: source, perDay: perDay, signed: selector + " example.com fail", spf: "bounce.example.net fail"}
}

// addressTerm is an a or mx term with the addresses of its hosts.
func addressTerm(term string, networks ...string) facts.Facts {
	f := lists(term)
	for _, network := range networks {
		f.SPF.Tree[0].Addresses = append(f.SPF.Tree[0].Addresses, netip.MustParsePrefix(network))
	}
	return f
}

// included is an SPF record that includes another with a term.
func included(name, term string) facts.Facts {
	f := includes(name)
	f.SPF.Tree[0].Terms = lists(term).SPF.Tree
	return f
}

// changing is a server in one IPv6 /64 whose address is another one each day. Its mail passes on
// the first days.
func changing(passing int) (all []flow) {
	for day := range 30 {
		f := silent(fmt.Sprintf("2001:db8:0:1::%x", day+1), 10)
		if day < passing {
			f.spf = "example.com pass"
		}
		f.first, f.days = day, 1
		all = append(all, f)
	}
	return all
}

// pool is addresses that sign with one key.
func pool(perDay int64) (all []flow) {
	for i := range 50 {
		all = append(all, signedBy(fmt.Sprintf("198.51.100.%d", 100+i), "p1", perDay))
	}
	return all
}

// linkScenarios are about what links an address to the domain.
var linkScenarios = []scenario{
	{
		name: "one in ten messages passes SPF", mail: []flow{{source: "192.0.2.1", perDay: 3, spf: "example.com pass"}, silent("192.0.2.1", 27)},
		senders: []string{"AS64496:yours"}, want: []want{{"AS64496:yours", dmarcd.ClassYours, "does not list the address", "Add the address"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name: "fewer than one in ten pass SPF", mail: []flow{{source: "192.0.2.1", perDay: 3, spf: "example.com pass"}, silent("192.0.2.1", 28)},
		senders: []string{"AS64496:others"}, want: []want{{"AS64496:others", dmarcd.ClassSpoofing, "does not list the address", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "one in ten messages passes by a key of its own", mail: []flow{signedBy("192.0.2.1", "s1", 3), silent("192.0.2.1", 27)},
		senders: []string{"AS64496:yours"}, want: []want{{"AS64496:yours", dmarcd.ClassYours, "", "Add the address"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name: "listed by a network of 4,096 addresses", facts: lists("ip4:198.51.96.0/20"), mail: []flow{office(100), silent("198.51.100.77", 20)},
		senders:  []string{"AS64496:yours", "AS64497:yours"},
		want:     []want{{"AS64497:yours", dmarcd.ClassYours, "", "Add the address"}},
		evidence: map[string]string{"AS64497:yours": "Your SPF record lists 1 address."},
		stage:    dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name: "listed by a network of more addresses", facts: lists("ip4:198.51.96.0/19"), mail: []flow{office(100), silent("198.51.100.77", 20)},
		want:  []want{{"AS64497:others", dmarcd.ClassSpoofing, "", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "listed by an IPv6 network", facts: lists("ip6:2001:db8::/48"), mail: []flow{office(100), silent("2001:db8:0:7::1", 20)},
		want:  []want{{"AS64499:yours", dmarcd.ClassYours, "", "Add the address"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name: "listed by a wide IPv6 network", facts: lists("ip6:2001:db8::/47"), mail: []flow{office(100), silent("2001:db8:0:7::1", 20)},
		want:  []want{{"AS64499:others", dmarcd.ClassSpoofing, "", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "listed by a term that does not pass", facts: lists("-ip4:198.51.100.77"), mail: []flow{office(100), silent("198.51.100.77", 20)},
		want:  []want{{"AS64497:others", dmarcd.ClassSpoofing, "", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "listed by an mx term", facts: addressTerm("mx", "198.51.100.77/32"), mail: []flow{office(100), silent("198.51.100.77", 20)},
		want:  []want{{"AS64497:yours", dmarcd.ClassYours, "", "Add the address"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name: "listed by an a term with a wide network", facts: addressTerm("a/16", "198.51.0.0/16"), mail: []flow{office(100), silent("198.51.100.77", 20)},
		want:  []want{{"AS64497:others", dmarcd.ClassSpoofing, "", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "listed by a record of the organization", facts: included("_spf.example.com", "ip4:198.51.100.77"), mail: []flow{office(100), silent("198.51.100.77", 20)},
		want:  []want{{"AS64497:yours", dmarcd.ClassYours, "", "Add the address"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name: "listed by a record of a provider", facts: included("spf.rented.example", "ip4:198.51.100.77"), mail: []flow{office(100), silent("198.51.100.77", 20)},
		want:  []want{{"AS64497:others", dmarcd.ClassSpoofing, "", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name:     "the host name of a linked address",
		mail:     []flow{{source: "192.0.2.40", perDay: 50, spf: "example.com pass"}, silent("192.0.2.41", 20), silent("192.0.2.42", 20)},
		senders:  []string{"AS64496:others", "AS64496:yours"},
		want:     []want{{"AS64496:yours", dmarcd.ClassYours, "", "Add the address"}, {"AS64496:others", dmarcd.ClassSpoofing, "", "-"}},
		evidence: map[string]string{"AS64496:yours": "A host name links 1 address to you"},
		stage:    dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name:    "an IPv6 address that changes within its /64",
		mail:    changing(10),
		senders: []string{"AS64499:yours"}, want: []want{{"AS64499:yours", dmarcd.ClassYours, "does not list the address", "Add the address"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name:    "an IPv6 address that changes and never passes",
		mail:    append(changing(0), office(100)),
		senders: []string{"AS64496:yours", "AS64499:others"}, want: []want{{"AS64499:others", dmarcd.ClassSpoofing, "", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name:  "the name of one address of a /64, seen first",
		mail:  []flow{office(100), silent("2001:db8:0:2::1", 20), silent("2001:db8:0:2::2", 20)},
		want:  []want{{"AS64499:yours", dmarcd.ClassYours, "", "Add the address"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name:  "the name of one address of a /64, seen last",
		mail:  []flow{office(100), silent("2001:db8:0:2::2", 20), silent("2001:db8:0:2::1", 20)},
		want:  []want{{"AS64499:yours", dmarcd.ClassYours, "", "Add the address"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name: "a pool of addresses that share a key", mail: append(pool(2), signedBy("203.0.113.5", "p1", 3)),
		senders: []string{"AS64497:yours", "AS64498:forwarding"},
		want:    []want{{"AS64497:yours", dmarcd.ClassYours, "-", "-"}, {"AS64498:forwarding", dmarcd.ClassForwarder, "-", "-"}},
		stage:   dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "half of the messages of a key are of linked addresses", mail: []flow{office(50), signedBy("203.0.113.5", "s1", 50)},
		want:  []want{{"AS64498:forwarding", dmarcd.ClassForwarder, "-", "-"}, {"AS64496:yours", dmarcd.ClassYours, "-", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "fewer than half of the messages of a key are of linked addresses", mail: []flow{office(49), signedBy("203.0.113.5", "s1", 50)},
		want:  []want{{"AS64498:yours", dmarcd.ClassYours, "-", "-"}, {"AS64496:yours", dmarcd.ClassYours, "-", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "a network with a quarter of the messages of a key", mail: []flow{signedBy("198.51.100.77", "s1", 75), signedBy("203.0.113.5", "s1", 13), signedBy("203.0.113.6", "s1", 12)},
		want:  []want{{"AS64498:yours", dmarcd.ClassYours, "-", "-"}, {"AS64497:yours", dmarcd.ClassYours, "-", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "a network with less than a quarter of the messages of a key", mail: []flow{signedBy("198.51.100.77", "s1", 76), signedBy("203.0.113.5", "s1", 12), signedBy("203.0.113.6", "s1", 13)},
		want:  []want{{"AS64498:forwarding", dmarcd.ClassForwarder, "-", "-"}, {"AS64497:yours", dmarcd.ClassYours, "-", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "a key of an address with the host name of a linked one", mail: []flow{
			{source: "192.0.2.40", perDay: 10, signed: "s1 example.com pass", spf: "example.com pass"}, signedBy("192.0.2.41", "s1", 80), signedBy("203.0.113.5", "s1", 10),
		},
		senders: []string{"AS64496:yours", "AS64498:forwarding"},
		want:    []want{{"AS64498:forwarding", dmarcd.ClassForwarder, "-", "-"}},
		stage:   dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "passed SPF 60 days ago, and fails since", mail: []flow{{source: "192.0.2.1", first: -31, days: 10, perDay: 50, spf: "example.com pass"}, silent("192.0.2.1", 10)},
		senders: []string{"AS64496:yours"}, want: []want{{"AS64496:yours", dmarcd.ClassYours, "does not list the address", "Add the address"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name: "passed SPF on the first of the 90 days", mail: []flow{{source: "192.0.2.1", first: -60, days: 1, perDay: 50, spf: "example.com pass"}, silent("192.0.2.1", 10)},
		senders: []string{"AS64496:yours"}, want: []want{{"AS64496:yours", dmarcd.ClassYours, "", ""}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name: "passed SPF before the 90 days", mail: []flow{{source: "192.0.2.1", first: -61, days: 1, perDay: 50, spf: "example.com pass"}, silent("192.0.2.1", 10)},
		senders: []string{"AS64496:others"}, want: []want{{"AS64496:others", dmarcd.ClassSpoofing, "", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "a service that misses strict alignment", record: "v=DMARC1; p=none; adkim=s; aspf=s; rua=mailto:d@example.com",
		mail:    []flow{office(100), {source: "198.51.100.10", perDay: 30, signed: "s1 em.example.com pass", spf: "em.example.com pass"}},
		senders: []string{"AS64496:yours", "sendgrid"},
		want:    []want{{"sendgrid", dmarcd.ClassService, "strict alignment requires example.com", "Set adkim=r and aspf=r"}},
		stage:   dmarcd.StageMonitoring, action: dmarcd.ActionFix, about: "sendgrid",
	},
	{
		name: "strict alignment and a spoofer that passes for a domain of its own", record: "v=DMARC1; p=none; adkim=s; aspf=s; rua=mailto:d@example.com",
		mail:    []flow{office(100), {source: "203.0.113.9", perDay: 30, signed: "k example.com.evil.example pass", spf: "notexample.com pass"}},
		senders: []string{"AS64496:yours", "AS64498:as:evil.example"},
		want:    []want{{"AS64498:as:evil.example", dmarcd.ClassUnknown, "", "Find out"}},
		stage:   dmarcd.StageMonitoring, action: dmarcd.ActionAnswer,
	},
}

// acceptScenarios are about forwarded mail that a person has to accept.
var acceptScenarios = []scenario{
	{
		name: "2 % of forwarded mail is affected", mail: []flow{office(100), signedBy("203.0.113.5", "s1", 98), broken("203.0.113.5", "s1", 2)},
		want:  []want{{"AS64498:forwarding", dmarcd.ClassForwarder, "does not verify", "No record of yours fixes this"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "more than 2 % of forwarded mail is affected", mail: []flow{office(100), signedBy("203.0.113.5", "s1", 97), broken("203.0.113.5", "s1", 2)},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionAccept,
	},
	{
		name: "accepted", mail: []flow{office(100), broken("203.0.113.6", "s1", 3)}, accepted: 90,
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "a quarter more than was accepted", mail: []flow{office(100), broken("203.0.113.6", "s1", 3)}, accepted: 72,
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "more than a quarter more than was accepted", mail: []flow{office(100), broken("203.0.113.6", "s1", 3)}, accepted: 71,
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionAccept,
	},
	{
		name: "0.5 % of the owner's mail is affected", mail: []flow{office(199), {source: "192.0.2.1", perDay: 1, spf: "bounce.example.net fail"}},
		want:  []want{{"AS64496:yours", dmarcd.ClassYours, "there is no DKIM signature", "Sign with DKIM"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "more than 0.5 % of the owner's mail is affected", mail: []flow{office(198), {source: "192.0.2.1", perDay: 1, spf: "bounce.example.net fail"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name: "messages with several reasons of receivers", mail: []flow{office(100), {source: "203.0.113.5", perDay: 2, spf: "example.com fail", reasons: rollup.TrustedForwarder | rollup.MailingList}},
		accepted: 60,
		want:     []want{{"AS64498:forwarding", dmarcd.ClassForwarder, "", "Sign all your mail with DKIM"}},
		stage:    dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
}
