package insight_test

import (
	"fmt"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

// office is the owner's own server, as it should be.
func office(perDay int64) flow {
	return flow{source: "192.0.2.1", perDay: perDay, signed: "s1 example.com pass", spf: "example.com pass"}
}

// botnet is spoofed mail from many addresses.
func botnet(perDay int64) (all []flow) {
	for i := range 20 {
		all = append(all, flow{source: fmt.Sprintf("203.0.113.%d", i+1), perDay: perDay, spf: fmt.Sprintf("junk%d.example fail", i)})
	}
	return all
}

// dkimFacts is what a check found of a selector.
func dkimFacts(selector, status string) facts.Facts {
	return facts.Facts{DKIM: facts.DKIM{Keys: []facts.DKIMKey{{Selector: selector, Status: status}}}}
}

// includes is an SPF record that includes domains.
func includes(domains ...string) facts.Facts {
	f := facts.Facts{SPF: facts.SPF{Status: "ok", Record: "v=spf1"}}
	for _, domain := range domains {
		f.SPF.Record += " include:" + domain
		f.SPF.Tree = append(f.SPF.Tree, facts.SPFTerm{Term: "include:" + domain, Target: domain})
	}
	return f
}

// lists is an SPF record with terms of the owner.
func lists(terms ...string) facts.Facts {
	f := facts.Facts{SPF: facts.SPF{Status: "ok", Record: "v=spf1"}}
	for _, term := range terms {
		f.SPF.Record += " " + term
		f.SPF.Tree = append(f.SPF.Tree, facts.SPFTerm{Term: term})
	}
	return f
}

// withKey adds a key to facts.
func withKey(f facts.Facts, selector, status string) facts.Facts {
	f.DKIM = dkimFacts(selector, status).DKIM
	return f
}

// ownScenarios are about servers of the owner.
var ownScenarios = []scenario{
	{
		name: "own server that passes", mail: []flow{office(100)},
		want:  []want{{"AS64496:yours", dmarcd.ClassYours, "-", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten, publish: "v=DMARC1; p=quarantine; rua=mailto:d@example.com",
	},
	{
		name: "own server by SPF alone", mail: []flow{{source: "192.0.2.1", perDay: 50, spf: "example.com pass"}},
		want:  []want{{"AS64496:yours", dmarcd.ClassYours, "-", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "own server by DKIM alone", mail: []flow{{source: "192.0.2.1", perDay: 50, signed: "s1 example.com pass", spf: "example.com softfail"}},
		want:  []want{{"AS64496:yours", dmarcd.ClassYours, "-", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "second server that SPF does not list, of the same domain", mail: []flow{office(100), {source: "192.0.2.2", perDay: 40, spf: "example.com softfail"}},
		want:  []want{{"AS64496:yours", dmarcd.ClassYours, "The SPF record of example.com does not list the address, and there is no DKIM signature for example.com.", "Add the address to the SPF record"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name: "broken SPF: too many lookups", mail: []flow{
			{source: "192.0.2.1", perDay: 50, days: 20, spf: "example.com pass"},
			{source: "192.0.2.1", perDay: 50, first: 20, days: 10, spf: "example.com permerror"},
		},
		facts: facts.Facts{SPF: facts.SPF{Status: "permerror", Lookups: 12}},
		want: []want{{
			"AS64496:yours", dmarcd.ClassYours, "(permerror) since 24 Oct 2024: the SPF record of example.com needs 12 lookups; the limit is 10",
			"Fix the SPF record of example.com.",
		}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name: "broken SPF all the time, listed address", mail: []flow{{source: "192.0.2.1", perDay: 50, spf: "example.com permerror"}},
		facts: facts.Facts{SPF: facts.SPF{Status: "multiple", Tree: []facts.SPFTerm{{Term: "ip4:192.0.2.0/28"}}}},
		want:  []want{{"AS64496:yours", dmarcd.ClassYours, "example.com has several SPF records", "Fix the SPF record"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name: "broken SPF that is valid again", mail: []flow{
			{source: "192.0.2.1", perDay: 50, days: 3, spf: "example.com permerror"},
			{source: "192.0.2.1", perDay: 50, first: 3, days: 27, spf: "example.com pass"},
		},
		facts: facts.Facts{SPF: facts.SPF{Status: "ok"}},
		want:  []want{{"AS64496:yours", dmarcd.ClassYours, "is valid now", "Nothing to do: the SPF record is valid now."}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "broken SPF, as the checks of that time found it", mail: []flow{
			{source: "192.0.2.1", perDay: 50, days: 10, spf: "example.com permerror"},
			{source: "192.0.2.1", perDay: 50, first: 10, days: 20, spf: "example.com pass"},
		},
		facts: facts.Facts{SPF: facts.SPF{Status: "ok"}},
		checks: []facts.StoredCheck{
			checked(20010, facts.Facts{SPF: facts.SPF{Status: "ok"}}),
			checked(19992, facts.Facts{SPF: facts.SPF{Status: "permerror", Lookups: 12}}),
			checked(19990, facts.Facts{SPF: facts.SPF{Status: "permerror", Lookups: 11}}),
			checked(19950, facts.Facts{SPF: facts.SPF{Status: "ok"}}),
		},
		want: []want{{
			"AS64496:yours", dmarcd.ClassYours, "(permerror) since 24 Sep 2024: the SPF record of example.com needs 12 lookups; the limit is 10",
			"Nothing to do: the SPF record is valid now.",
		}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "DKIM key that was missing for a while", mail: []flow{
			{source: "192.0.2.1", perDay: 50, days: 5, signed: "s2 example.com permerror", spf: "bounce.example.net fail"},
			{source: "192.0.2.1", perDay: 50, first: 5, days: 25, signed: "s2 example.com pass", spf: "bounce.example.net fail"},
		},
		facts:  dkimFacts("s2", "found"),
		checks: []facts.StoredCheck{checked(20005, dkimFacts("s2", "found")), checked(19990, dkimFacts("s2", "none"))},
		want: []want{{
			"AS64496:yours", dmarcd.ClassYours, "the key s2._domainkey.example.com is missing in the DNS", "Nothing to do: the key s2._domainkey.example.com is published now.",
		}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "rotated DKIM key that is not published", mail: []flow{
			{source: "192.0.2.1", perDay: 50, days: 20, signed: "s1 example.com pass", spf: "bounce.example.net fail"},
			{source: "192.0.2.1", perDay: 50, first: 20, days: 10, signed: "s2 example.com permerror", spf: "bounce.example.net fail"},
		},
		facts: dkimFacts("s2", "none"),
		want:  []want{{"AS64496:yours", dmarcd.ClassYours, "the key s2._domainkey.example.com is missing in the DNS", "Publish the key s2._domainkey.example.com"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name: "revoked DKIM key", mail: []flow{
			{source: "192.0.2.1", perDay: 50, days: 20, signed: "s1 example.com pass", spf: "bounce.example.net fail"},
			{source: "192.0.2.1", perDay: 50, first: 20, days: 10, signed: "s1 example.com fail", spf: "bounce.example.net fail"},
		},
		facts: dkimFacts("s1", "revoked"),
		want:  []want{{"AS64496:yours", dmarcd.ClassYours, "is revoked in the DNS", "Sign with a key that is not revoked"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name: "key that receivers cannot use", mail: []flow{
			{source: "192.0.2.1", perDay: 50, days: 20, signed: "s1 example.com pass", spf: "example.com pass"},
			{source: "192.0.2.1", perDay: 50, first: 20, days: 10, signed: "s1 example.com permerror", spf: "other.example fail"},
		},
		want:  []want{{"AS64496:yours", dmarcd.ClassYours, "receivers could not use the key", "Correct the key"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name: "own gateway changes signed mail", mail: []flow{office(100), {source: "192.0.2.9", perDay: 30, signed: "s1 example.com fail", spf: "gateway.example pass"}},
		facts: withKey(lists("ip4:192.0.2.0/28"), "s1", "found"),
		want:  []want{{"AS64496:yours", dmarcd.ClassYours, "the message was changed in transit", "Sign the message last"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name: "subdomain that is not covered", mail: []flow{office(100), {source: "192.0.2.3", perDay: 30, from: "news.example.com", spf: "news.example.com none"}},
		facts: lists("ip4:192.0.2.3"),
		want:  []want{{"AS64496:yours", dmarcd.ClassYours, "The subdomain news.example.com is not covered", "Publish an SPF record for news.example.com"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name: "subdomain mail that passes", mail: []flow{office(100), {source: "192.0.2.3", perDay: 30, from: "news.example.com", signed: "n example.com pass"}},
		want:  []want{{"AS64496:yours", dmarcd.ClassYours, "-", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "strict alignment is missed", record: "v=DMARC1; p=none; adkim=s; aspf=s; rua=mailto:d@example.com",
		mail:  []flow{office(100), {source: "192.0.2.3", perDay: 30, from: "news.example.com", signed: "n example.com pass", spf: "bounce.example.com pass"}},
		want:  []want{{"AS64496:yours", dmarcd.ClassYours, "but strict alignment requires news.example.com", "Set adkim=r and aspf=r"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name: "own host by its name", mail: []flow{office(100), {source: "198.51.100.20", perDay: 20}},
		want:  []want{{"AS64497:yours", dmarcd.ClassYours, "there is no DKIM signature", "Sign with DKIM for example.com"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix, about: "AS64497:yours",
	},
	{
		name: "signs for another domain of its own", mail: []flow{office(100), {source: "192.0.2.4", perDay: 30, signed: "k example.org pass", spf: "example.org pass"}},
		facts: lists("ip4:192.0.2.4"),
		want:  []want{{"AS64496:yours", dmarcd.ClassYours, "SPF passes for example.org, which is not aligned with example.com, and the signature is for example.org", "Sign with DKIM for example.com instead of example.org"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name: "signs for another domain, and nothing links it", mail: []flow{office(100), {source: "192.0.2.4", perDay: 30, signed: "k example.org pass", spf: "example.org pass"}},
		want:  []want{{"AS64496:as:example.org", dmarcd.ClassUnknown, "the signature is for example.org", "Find out whether it sends for you"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionAnswer, about: "AS64496:as:example.org",
	},
	{
		name: "the team confirms a sender", team: map[string]dmarcd.Class{"AS64497": dmarcd.ClassYours},
		mail:  []flow{office(100), {source: "198.51.100.77", perDay: 50, spf: "elsewhere.example fail"}},
		want:  []want{{"AS64497:others", dmarcd.ClassYours, "there is no DKIM signature", "Sign with DKIM for example.com"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name: "tiny volume", mail: []flow{{source: "192.0.2.1", perDay: 1, days: 5, signed: "s1 example.com pass", spf: "example.com pass"}},
		want:  []want{{"AS64496:yours", dmarcd.ClassYours, "-", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionWait,
	},
}

// serviceScenarios are about services of the catalogue.
var serviceScenarios = []scenario{
	{
		name: "SendGrid, aligned", mail: []flow{office(100), {source: "198.51.100.10", perDay: 50, signed: "s1 example.com pass", spf: "em.example.com pass"}},
		want:  []want{{"sendgrid", dmarcd.ClassService, "-", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "SendGrid, not aligned", mail: []flow{office(100), {source: "198.51.100.10", perDay: 50, signed: "s1 sendgrid.net pass", spf: "sendgrid.net pass"}},
		want:  []want{{"sendgrid:rest", dmarcd.ClassUnknown, "SPF passes for sendgrid.net, which is not aligned with example.com, and the signature is for sendgrid.net", "Find out whether it sends for you"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionAnswer, about: "sendgrid:rest",
	},
	{
		name: "SendGrid, not aligned, and in SPF", facts: includes("sendgrid.net"),
		mail:     []flow{office(100), {source: "198.51.100.10", perDay: 50, signed: "s1 sendgrid.net pass", spf: "sendgrid.net pass"}},
		want:     []want{{"sendgrid:rest", dmarcd.ClassService, "the signature is for sendgrid.net", "Sender Authentication"}},
		evidence: map[string]string{"sendgrid:rest": "Your SPF record includes it."},
		stage:    dmarcd.StageMonitoring, action: dmarcd.ActionFix, about: "sendgrid:rest",
	},
	{
		name: "Mailchimp, aligned by DKIM", mail: []flow{office(100), {source: "198.51.100.11", perDay: 50, signed: "k2 example.com pass", spf: "mcdlv.net pass"}},
		want:  []want{{"mailchimp", dmarcd.ClassService, "-", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "Mailchimp, not aligned, and the team uses it", mail: []flow{office(100), {source: "198.51.100.11", perDay: 50, signed: "k1 mailchimpapp.net pass", spf: "mcdlv.net pass"}},
		team:  map[string]dmarcd.Class{"mailchimp:rest": dmarcd.ClassYours},
		want:  []want{{"mailchimp:rest", dmarcd.ClassYours, "the signature is for mailchimpapp.net", "k2._domainkey"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name: "Amazon SES, aligned", mail: []flow{office(100), {source: "198.51.100.12", perDay: 50, signed: "abc example.com pass, ses amazonses.com pass", spf: "amazonses.com pass"}},
		want:  []want{{"amazon-ses", dmarcd.ClassService, "-", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "Amazon SES, not aligned, and in SPF", mail: []flow{office(100), {source: "198.51.100.12", perDay: 50, signed: "ses amazonses.com pass", spf: "eu-west-1.amazonses.com pass"}},
		facts: includes("amazonses.com"),
		want:  []want{{"amazon-ses:rest", dmarcd.ClassService, "SPF passes for amazonses.com", "Easy DKIM"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name: "MailerLite, aligned", mail: []flow{office(100), {source: "198.51.100.13", perDay: 20, signed: "ml example.com pass", spf: "mlsend.com pass"}},
		want:  []want{{"mailerlite", dmarcd.ClassService, "-", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "MailerLite, not aligned", mail: []flow{office(100), {source: "198.51.100.13", perDay: 20, signed: "ml mlsend.com pass", spf: "mlsend.com pass"}},
		want:  []want{{"mailerlite:rest", dmarcd.ClassUnknown, "the signature is for mlsend.com", "Find out whether it sends for you"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionAnswer, about: "mailerlite:rest",
	},
	{
		name: "Zendesk, aligned", mail: []flow{office(100), {source: "198.51.100.14", perDay: 20, signed: "zendesk1 example.com pass", spf: "example.com pass"}},
		want:  []want{{"zendesk", dmarcd.ClassService, "-", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "Zendesk, key is gone", mail: []flow{
			office(100),
			{source: "198.51.100.14", perDay: 20, days: 15, signed: "zendesk1 example.com pass", spf: "zendesk.com pass"},
			{source: "198.51.100.14", perDay: 20, first: 15, days: 15, signed: "zendesk1 example.com permerror", spf: "zendesk.com pass"},
		},
		facts: dkimFacts("zendesk1", "none"),
		want:  []want{{"zendesk", dmarcd.ClassService, "the key zendesk1._domainkey.example.com is missing", "Publish the key zendesk1._domainkey.example.com"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionFix,
	},
	{
		name: "Microsoft 365 in SPF, not signed", facts: includes("spf.protection.outlook.com"),
		mail:  []flow{{source: "198.51.100.16", perDay: 80, signed: "selector1 contoso.onmicrosoft.com pass", spf: "example.com pass"}},
		want:  []want{{"microsoft-365:yours", dmarcd.ClassService, "-", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "hijacked service account", mail: append([]flow{office(100)}, flow{source: "198.51.100.10", first: 27, days: 2, perDay: 2000, signed: "s1 sendgrid.net pass", spf: "sendgrid.net pass"}),
		team:  map[string]dmarcd.Class{"sendgrid": dmarcd.ClassSpoofing},
		want:  []want{{"sendgrid:rest", dmarcd.ClassSpoofing, "the signature is for sendgrid.net", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "a personal mailbox cannot align", mail: []flow{office(100), {source: "198.51.100.19", perDay: 5, signed: "s2048 yahoo.com pass", spf: "yahoo.com pass"}},
		want:  []want{{"yahoo:as:yahoo.com", dmarcd.ClassUnknown, "the signature is for yahoo.com", "Find out whether it sends for you"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionAnswer, about: "yahoo:as:yahoo.com",
	},
}

// relayScenarios are about forwarders and mailing lists.
var relayScenarios = []scenario{
	{
		name: "forwarding that keeps the signature", mail: []flow{office(100), {source: "203.0.113.5", perDay: 2, signed: "s1 example.com pass", spf: "example.com fail"}},
		want:  []want{{"AS64498:forwarding", dmarcd.ClassForwarder, "-", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "forwarding with a rewritten envelope", mail: []flow{office(100), {source: "203.0.113.5", perDay: 2, signed: "s1 example.com pass", spf: "forwarder.example pass"}},
		want:  []want{{"AS64498:forwarding", dmarcd.ClassForwarder, "-", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "known forwarder", mail: []flow{office(100), {source: "198.51.100.18", perDay: 2, signed: "s1 example.com pass", spf: "forwardemail.net pass"}},
		want:  []want{{"forward-email", dmarcd.ClassForwarder, "-", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "forwarding of unsigned mail", mail: []flow{{source: "192.0.2.1", perDay: 100, spf: "example.com pass"}, {source: "203.0.113.5", perDay: 2, spf: "example.com fail", reasons: rollup.Forwarded}},
		want:  []want{{"AS64498:forwarding", dmarcd.ClassForwarder, "there is no DKIM signature", "Sign all your mail with DKIM for example.com"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionAccept,
	},
	{
		name: "forwarding from a mailbox at Google", mail: []flow{office(100), {source: "198.51.100.15", perDay: 3, signed: "s1 example.com pass", spf: "gmail.com pass"}},
		want:  []want{{"google:forwarding", dmarcd.ClassForwarder, "-", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "mailing list that changes mail", mail: []flow{office(100), {source: "203.0.113.6", perDay: 3, signed: "s1 example.com fail", spf: "list.example pass"}},
		facts: dkimFacts("s1", "found"),
		want:  []want{{"AS64498:forwarding", dmarcd.ClassForwarder, "the message was changed in transit", "No record of yours fixes this: the forwarder changes signed mail."}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionAccept,
	},
	{
		name: "known mailing list that changes mail", mail: []flow{office(100), {source: "198.51.100.17", perDay: 3, signed: "s1 example.com fail, 1 groups.io pass", spf: "groups.io pass"}},
		want:  []want{{"groups-io", dmarcd.ClassForwarder, "the signature s1._domainkey.example.com does not verify", "Ask its owner to rewrite the From address"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionAccept,
	},
	{
		name: "mailing list that does not change mail", mail: []flow{office(100), {source: "198.51.100.21", perDay: 3, signed: "s1 example.com pass", spf: "lists.debian.org pass"}},
		want:  []want{{"debian-lists", dmarcd.ClassForwarder, "-", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "mailing list at a mailbox provider", mail: []flow{office(100), {source: "198.51.100.15", perDay: 3, signed: "s1 example.com fail, 20230601 googlegroups.com pass", spf: "googlegroups.com pass"}},
		want:  []want{{"google-groups", dmarcd.ClassForwarder, "does not verify", "mailing list"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionAccept,
	},
	{
		name: "list that receivers know by ARC", mail: []flow{office(100), {source: "203.0.113.7", perDay: 3, spf: "list.example pass", reasons: rollup.ARC}},
		want:  []want{{"AS64498:forwarding", dmarcd.ClassForwarder, "SPF passes for list.example", "Sign all your mail with DKIM"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionAccept,
	},
}

// spoofScenarios are about mail that the owner does not know of.
var spoofScenarios = []scenario{
	{
		name: "botnet", mail: append(botnet(5), office(100)),
		want:  []want{{"AS64498:others", dmarcd.ClassSpoofing, "there is no DKIM signature", "-"}, {"AS64496:yours", dmarcd.ClassYours, "-", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "snowshoe spam that authenticates as its own domains", mail: snowshoe(1), // each 1 % of the owner's mail
		want:  []want{{"AS64498:as:offer0.example", dmarcd.ClassUnknown, "SPF passes for offer0.example", "Find out"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "more snowshoe spam than a question may be open about", mail: snowshoe(2),
		want:  []want{{"AS64498:as:offer7.example", dmarcd.ClassUnknown, "SPF passes for offer7.example", "Find out"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionAnswer, about: "AS64498:as:offer0.example",
	},
	{
		name: "spoofing in the name of a subdomain", mail: []flow{office(100), {source: "203.0.113.9", perDay: 20, from: "billing.example.com", spf: "junk.example fail"}},
		want:  []want{{"AS64498:others", dmarcd.ClassSpoofing, "SPF does not pass", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "spoofing with the envelope of the domain", mail: []flow{office(100), {source: "203.0.113.9", perDay: 20, spf: "example.com fail"}},
		want:  []want{{"AS64498:others", dmarcd.ClassSpoofing, "The SPF record of example.com does not list the address", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "service that the catalogue does not have", mail: []flow{office(100), {source: "203.0.113.10", perDay: 20, signed: "k newsletters.example pass", spf: "newsletters.example pass"}},
		want:  []want{{"AS64498:as:newsletters.example", dmarcd.ClassUnknown, "the signature is for newsletters.example", "Find out whether it sends for you"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionAnswer,
	},
	{
		name: "new sender", mail: []flow{office(100), {source: "203.0.113.11", first: 26, days: 4, perDay: 50, spf: "example.com softfail"}},
		want:  []want{{"AS64498:others", dmarcd.ClassUnknown, "does not list the address", "Find out whether"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "a few messages that never pass", mail: []flow{office(100), {source: "203.0.113.12", days: 2, perDay: 2, spf: "junk.example fail"}},
		want:  []want{{"AS64498:others", dmarcd.ClassUnknown, "SPF does not pass", "Find out whether"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "the team disowns a sender", team: map[string]dmarcd.Class{"AS64498": dmarcd.ClassSpoofing},
		mail:  []flow{office(100), {source: "203.0.113.10", perDay: 20, signed: "k newsletters.example pass", spf: "newsletters.example pass"}},
		want:  []want{{"AS64498:as:newsletters.example", dmarcd.ClassSpoofing, "the signature is for newsletters.example", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
	{
		name: "nothing but spoofing", mail: botnet(5),
		want:  []want{{"AS64498:others", dmarcd.ClassSpoofing, "SPF does not pass", "-"}},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten,
	},
}

// snowshoe is spam that is spread thinly over addresses and domains.
func snowshoe(perDay int64) []flow {
	all := []flow{office(100)}
	for i := range 20 {
		all = append(all, flow{source: fmt.Sprintf("203.0.113.%d", 100+i), perDay: perDay, spf: fmt.Sprintf("offer%d.example pass", i)})
	}
	return all
}

// recordScenarios are about stages and the record.
var recordScenarios = []scenario{
	{name: "no record", record: "-", mail: []flow{office(100)}, stage: dmarcd.StageNone, action: dmarcd.ActionPublish, publish: watching},
	{
		name: "record that cannot be used", record: "v=DMARC1; p=bogus; rua=mailto:d@example.com", mail: []flow{office(100)},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionRepair,
	},
	{
		name: "quarantine, all mail passes", record: "v=DMARC1; p=quarantine; rua=mailto:d@example.com; ruf=mailto:f@example.com; foo=bar", mail: []flow{office(100)},
		stage: dmarcd.StagePartial, action: dmarcd.ActionTighten, publish: "v=DMARC1; p=reject; rua=mailto:d@example.com; ruf=mailto:f@example.com; foo=bar",
	},
	{
		name: "reject in testing", record: "v=DMARC1; p=reject; t=y; rua=mailto:d@example.com", mail: []flow{office(100)},
		stage: dmarcd.StagePartial, action: dmarcd.ActionTighten, publish: "v=DMARC1; p=reject; rua=mailto:d@example.com",
	},
	{
		name: "quarantine in testing", record: "v=DMARC1; p=quarantine; t=y; rua=mailto:d@example.com", mail: []flow{office(100)},
		stage: dmarcd.StageMonitoring, action: dmarcd.ActionTighten, publish: "v=DMARC1; p=quarantine; rua=mailto:d@example.com",
	},
	{
		name: "reject for a part", record: "v=DMARC1; p=reject; pct=20; rua=mailto:d@example.com", mail: []flow{office(100)},
		stage: dmarcd.StagePartial, action: dmarcd.ActionTighten, publish: "v=DMARC1; p=reject; rua=mailto:d@example.com",
	},
	{
		name: "subdomains are not protected", record: "v=DMARC1; p=reject; sp=none; rua=mailto:d@example.com", mail: []flow{office(100)},
		stage: dmarcd.StagePartial, action: dmarcd.ActionTighten, publish: "v=DMARC1; p=reject; rua=mailto:d@example.com",
	},
	{name: "enforced", record: "v=DMARC1; p=reject; rua=mailto:d@example.com", mail: append(botnet(5), office(100)), stage: dmarcd.StageEnforced},
	{
		name: "enforced, and a service loses mail", record: "v=DMARC1; p=reject; rua=mailto:d@example.com",
		facts: includes("sendgrid.net"),
		mail:  []flow{office(100), {source: "198.51.100.10", perDay: 50, signed: "s1 sendgrid.net pass", spf: "sendgrid.net pass"}},
		want:  []want{{"sendgrid:rest", dmarcd.ClassService, "the signature is for sendgrid.net", "Sender Authentication"}},
		stage: dmarcd.StageEnforced, action: dmarcd.ActionFix,
	},
	{name: "no reports yet", stage: dmarcd.StageMonitoring, action: dmarcd.ActionWait},
	{
		name: "parked domain that is locked", record: "v=DMARC1; p=reject; rua=mailto:d@example.com", parked: true, mail: botnet(5),
		want: []want{{"AS64498:others", dmarcd.ClassSpoofing, "", "-"}}, stage: dmarcd.StageParked,
	},
	{
		name: "parked domain that is open", parked: true, stage: dmarcd.StageParked, action: dmarcd.ActionLock,
		publish: "v=DMARC1; p=reject; rua=mailto:d@example.com",
	},
}
