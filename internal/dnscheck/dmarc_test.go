package dnscheck_test

import "github.com/dmarcd/dmarcd/internal/dnscheck"

// own returns the sound zone with another DMARC record.
func own(record string) string {
	return without("_dmarc.example.com") + `_dmarc.example.com TXT "` + record + `"` + "\n"
}

var dmarcCases = []findingCase{
	{
		name: "a sound domain", zone: sound,
		want: []string{"dmarc.reject", "spf.valid", "dkim.found", "mta_sts.missing", "dnssec.unsigned"},
		not:  []string{"dmarc.policy_none", "dmarc.receivers_disagree", "dkim.not_found", "tls_rpt.missing"},
	},
	{
		name: "a name that does not exist", domain: "nosuch.example", zone: "",
		want: []string{"domain.missing", "dmarc.missing"}, not: []string{"spf.missing", "mx.none", "dkim.no_keys", "dnssec.unsigned"},
	},
	{
		name: "a name that does not exist below a policy for such names", domain: "nosuch.example.com",
		zone: own("v=DMARC1; p=none; np=reject; rua=mailto:dmarc@example.com"),
		want: []string{"domain.missing", "dmarc.inherited", "dmarc.reject"}, not: []string{"dmarc.missing"},
	},
	{
		name: "no answer", zone: without("_dmarc") + "_dmarc.example.com INCONCLUSIVE",
		want: []string{"dmarc.inconclusive"}, not: []string{"dmarc.missing"},
	},
	{
		name: "no record", zone: without("_dmarc"), want: []string{"dmarc.missing"},
		fix: `_dmarc.example.com. TXT "v=DMARC1; p=none; rua=mailto:dmarc-reports@example.com"`,
	},
	{
		name: "no record, and an address of this server", zone: without("_dmarc"), want: []string{"dmarc.missing"},
		request: dnscheck.Request{ReportAddress: "abc@reports.example.net"},
		fix:     `_dmarc.example.com. TXT "v=DMARC1; p=none; rua=mailto:abc@reports.example.net"`,
	},
	{
		name: "the version in lower case", zone: own("v=dmarc1; p=reject"),
		want: []string{"dmarc.near_miss"}, not: []string{"dmarc.missing"}, message: "v=DMARC1 must be in upper case",
		fix: `_dmarc.example.com. TXT "v=DMARC1; p=reject; rua=mailto:dmarc-reports@example.com"`,
	},
	{name: "a leading space", zone: own(" v=DMARC1; p=reject"), want: []string{"dmarc.near_miss"}, message: "starts with a space"},
	{
		name: "quotation marks in the text", zone: own(`\"v=DMARC1; p=reject; rua=mailto:d@example.com\"`), want: []string{"dmarc.near_miss"}, message: "quotation marks",
		fix: `_dmarc.example.com. TXT "v=DMARC1; p=reject; rua=mailto:d@example.com"`,
	},
	{
		name: "no separator", zone: own("v=DMARC1 p=quarantine; rua=mailto:d@example.com"), want: []string{"dmarc.near_miss"}, message: "no semicolon",
		fix: `_dmarc.example.com. TXT "v=DMARC1; p=quarantine; rua=mailto:d@example.com"`,
	},
	{
		name: "the version in the wrong place", zone: own("p=reject; v=DMARC1; rua=mailto:d@example.com"), want: []string{"dmarc.near_miss"},
		fix: `_dmarc.example.com. TXT "v=DMARC1; p=reject; rua=mailto:d@example.com"`,
	},
	{name: "an SPF record at _dmarc", zone: own("v=spf1 -all"), want: []string{"dmarc.near_miss"}, message: "it is an SPF record"},
	{
		name: "a near miss below a domain with a record", domain: "sub.example.com",
		zone: sound + `_dmarc.sub.example.com TXT "v=dmarc1; p=none"`,
		want: []string{"dmarc.near_miss_inherited"}, not: []string{"dmarc.near_miss"},
	},
	{
		name: "a near miss without a policy below a domain with one", domain: "sub.example.com",
		zone: sound + `sub.example.com MX 10 mx.example.com
_dmarc.sub.example.com TXT "v=dmarc1"`,
		want: []string{"dmarc.near_miss_inherited"}, fix: `_dmarc.sub.example.com. TXT "v=DMARC1; p=reject; rua=mailto:dmarc-reports@sub.example.com"`,
	},
	{name: "a text beside the record", zone: sound + `_dmarc.example.com TXT "hello"`, want: []string{"dmarc.stray_text", "dmarc.reject"}},
	{
		name: "a record at the domain itself", zone: without("_dmarc") + `example.com TXT "v=DMARC1; p=reject"`,
		want: []string{"dmarc.record_at_apex", "dmarc.missing"}, fix: `_dmarc.example.com. TXT "v=DMARC1; p=reject; rua=mailto:dmarc-reports@example.com"`,
	},
	{
		name: "a record at the domain itself beside one in its place", zone: sound + `example.com TXT "v=DMARC1; p=none"`,
		want: []string{"dmarc.record_at_apex", "dmarc.reject"}, fix: `_dmarc.example.com. TXT "v=DMARC1; p=reject; rua=mailto:dmarc@example.com"`,
	},
	{
		name: "no record at a public suffix", domain: "co.uk", zone: "co.uk MX 10 mx.example.com", want: []string{"dmarc.missing"},
		fix: `_dmarc.co.uk. TXT "v=DMARC1; p=none; psd=y; rua=mailto:dmarc-reports@co.uk"`,
	},
	{
		name: "an alias that leads nowhere", zone: without("_dmarc") + "_dmarc.example.com CNAME gone.example.net",
		want: []string{"dmarc.dangling_alias"}, not: []string{"dmarc.missing"}, message: "gone.example.net",
	},
	{
		name: "an alias that leads nowhere below a domain with a record", domain: "sub.example.com",
		zone: sound + "_dmarc.sub.example.com CNAME gone.example.net", want: []string{"dmarc.dangling_alias_inherited"},
	},
	{
		name: "two records", zone: sound + `_dmarc.example.com TXT "v=DMARC1; p=none; rua=mailto:other@example.com"`,
		want: []string{"dmarc.multiple_records"}, not: []string{"dmarc.missing", "dmarc.receivers_disagree"},
		fix: `_dmarc.example.com. TXT "v=DMARC1; p=reject; rua=mailto:other@example.com,mailto:dmarc@example.com"`,
	},
	{
		name: "two records that differ in everything", want: []string{"dmarc.multiple_records"},
		zone: own("v=DMARC1; p=none; t=y; sp=none; rua=mailto:a@example.com") +
			`_dmarc.example.com TXT "v=DMARC1; p=reject; sp=quarantine; ruf=mailto:f@example.com"`,
		fix: `_dmarc.example.com. TXT "v=DMARC1; p=reject; sp=quarantine; rua=mailto:a@example.com; ruf=mailto:f@example.com"`,
	},
	{
		name: "two records without a policy", zone: own("v=DMARC1; rua=mailto:a@example.com") + `_dmarc.example.com TXT "v=DMARC1"`,
		want: []string{"dmarc.multiple_records"}, fix: `_dmarc.example.com. TXT "v=DMARC1; p=none; rua=mailto:a@example.com"`,
	},
	{
		name: "a typing error in sp switches the policy off", zone: own("v=DMARC1; p=reject; sp=rejct"),
		want: []string{"dmarc.policy_off"}, not: []string{"dmarc.no_reports", "dmarc.invalid_value"}, message: "sp=rejct",
	},
	{
		name: "a typing error in sp takes the policy away", zone: own("v=DMARC1; p=reject; sp=rejct; rua=mailto:dmarc@example.com"),
		want: []string{"dmarc.policy_lost"}, not: []string{"dmarc.policy_none", "dmarc.reject"},
		fix: `_dmarc.example.com. TXT "v=DMARC1; p=reject; rua=mailto:dmarc@example.com"`,
	},
	{name: "no p", zone: own("v=DMARC1; rua=mailto:dmarc@example.com"), want: []string{"dmarc.policy_lost"}, message: "no policy (p)"},
	{name: "a tag twice", zone: own("v=DMARC1; p=none; p=reject"), want: []string{"dmarc.duplicate_tag"}, not: []string{"dmarc.policy_none"}},
	{
		name: "none", zone: own("v=DMARC1; p=none; rua=mailto:dmarc@example.com"), want: []string{"dmarc.policy_none"},
		fix: `_dmarc.example.com. TXT "v=DMARC1; p=quarantine; rua=mailto:dmarc@example.com"`,
	},
	{
		name: "quarantine", zone: own("v=DMARC1; p=quarantine; rua=mailto:dmarc@example.com"), want: []string{"dmarc.policy_quarantine"},
		fix: `_dmarc.example.com. TXT "v=DMARC1; p=reject; rua=mailto:dmarc@example.com"`,
	},
	{
		name: "t=y", zone: own("v=DMARC1; p=quarantine; t=y; rua=mailto:dmarc@example.com"),
		want: []string{"dmarc.testing"}, not: []string{"dmarc.policy_none", "dmarc.policy_quarantine"}, message: "reduces it to none",
	},
	{
		name: "pct", zone: own("v=DMARC1; p=reject; pct=50; rua=mailto:dmarc@example.com"),
		want: []string{"dmarc.percentage"}, not: []string{"dmarc.historic_tag", "dmarc.reject"},
	},
	{
		name: "sp weaker than p", zone: own("v=DMARC1; p=reject; sp=none; rua=mailto:dmarc@example.com"),
		want: []string{"dmarc.subdomains_weaker"},
	},
	{
		name: "np weaker than p", zone: own("v=DMARC1; p=reject; np=none; rua=mailto:dmarc@example.com"),
		want: []string{"dmarc.missing_names_weaker"}, not: []string{"dmarc.np_without_effect"},
	},
	{
		name: "np where every name exists", zone: own("v=DMARC1; p=none; np=reject; rua=mailto:dmarc@example.com") + `*.example.com A 192.0.2.9`,
		want: []string{"dmarc.np_without_effect"},
	},
	{
		name: "a weak np where every name exists", zone: own("v=DMARC1; p=reject; np=none; rua=mailto:dmarc@example.com") + `*.example.com A 192.0.2.9`,
		want: []string{"dmarc.missing_names_weaker"}, not: []string{"dmarc.np_without_effect"},
	},
	{
		name: "np on a signed zone with compact denial", signed: []string{"example.com"},
		zone: own("v=DMARC1; p=none; np=reject; rua=mailto:dmarc@example.com") +
			"example.com NS kim.ns.cloudflare.com\nexample.com DS 00010d02\nexample.com DNSKEY 00\n",
		want: []string{"dmarc.np_without_effect"}, message: "Cloudflare",
	},
	{
		name: "np on an unsigned zone of such a host",
		zone: own("v=DMARC1; p=none; np=reject; rua=mailto:dmarc@example.com") + "example.com NS ns-1.awsdns-01.org\n",
		want: []string{"dmarc.np_at_risk"}, not: []string{"dmarc.np_without_effect"}, message: "Route 53",
	},
	{
		name: "a record between the domain and its organization", domain: "a.mail.example.com",
		zone: own("v=DMARC1; p=none; rua=mailto:dmarc@example.com") + `_dmarc.mail.example.com TXT "v=DMARC1; p=reject; psd=n"
a.mail.example.com A 192.0.2.3`,
		want: []string{"dmarc.receivers_disagree"}, fix: `_dmarc.a.mail.example.com. TXT "v=DMARC1; p=reject; rua=mailto:dmarc-reports@a.mail.example.com"`,
		message: "under RFC 9989 the policy is reject (from mail.example.com), under RFC 7489 the policy is none (from example.com)",
	},
	{
		name: "only the subdomain has a record", domain: "sub.example.com",
		zone: without("_dmarc") + `_dmarc.sub.example.com TXT "v=DMARC1; p=reject; rua=mailto:dmarc@sub.example.com"`,
		want: []string{"dmarc.organization_differs"}, not: []string{"dmarc.receivers_disagree"},
	},
	{
		name: "a top-level domain that captures", zone: sound + `_dmarc.com TXT "v=DMARC1; p=none"`,
		want: []string{"dmarc.captured"},
		fix:  `_dmarc.example.com. TXT "v=DMARC1; p=reject; rua=mailto:dmarc@example.com; psd=n"`,
	},
	{
		name: "a top-level domain that captures a subdomain", domain: "mail.example.com",
		zone: sound + `_dmarc.com TXT "v=DMARC1; p=none"
_dmarc.mail.example.com TXT "v=DMARC1; p=reject; rua=mailto:dmarc@example.com"`,
		want: []string{"dmarc.captured_organization"}, not: []string{"dmarc.captured"},
	},
	{
		name: "a top-level domain with a record full of mistakes",
		zone: without("_dmarc") + `_dmarc.com TXT "v=DMARC1; p=none; psd=y; foo=bar; rua=mailto:x@nosuch.example"`,
		want: []string{"dmarc.policy_of_suffix"},
		not:  []string{"dmarc.policy_none", "dmarc.unknown_tag", "dmarc.destination_without_mail", "dmarc.no_reports"},
	},
	{
		name: "a top-level domain with a record that is switched off", zone: without("_dmarc") + `_dmarc.com TXT "v=DMARC1; p=rejct; psd=y"`,
		want: []string{"dmarc.missing"}, not: []string{"dmarc.policy_off", "dmarc.policy_of_suffix"},
		fix: `_dmarc.example.com. TXT "v=DMARC1; p=none; rua=mailto:dmarc-reports@example.com"`,
	},
	{
		name: "the policy of a top-level domain", zone: without("_dmarc") + `_dmarc.com TXT "v=DMARC1; p=reject; psd=y"`,
		want: []string{"dmarc.policy_of_suffix"}, not: []string{"dmarc.missing", "dmarc.receivers_disagree"},
		fix: `_dmarc.example.com. TXT "v=DMARC1; p=reject; rua=mailto:dmarc-reports@example.com"`,
	},
	{
		name: "the record of the parent", domain: "sub.example.com", zone: sound + "sub.example.com A 192.0.2.4",
		want: []string{"dmarc.inherited", "dmarc.reject"}, not: []string{"dmarc.missing"},
	},
}

var dmarcTagCases = []findingCase{
	{name: "a value that adkim cannot have", zone: own("v=DMARC1; p=reject; adkim=x; rua=mailto:d@example.com"), want: []string{"dmarc.invalid_value"}},
	{name: "an unknown tag", zone: own("v=DMARC1; p=reject; foo=bar; rua=mailto:d@example.com"), want: []string{"dmarc.unknown_tag"}},
	{name: "a historic tag", zone: own("v=DMARC1; p=reject; ri=86400; rua=mailto:d@example.com"), want: []string{"dmarc.historic_tag"}},
	{name: "a tag with capital letters", zone: own("v=DMARC1; P=reject; rua=mailto:d@example.com"), want: []string{"dmarc.tag_case"}},
	{name: "an element without a value", zone: own("v=DMARC1; p=reject; adkim; rua=mailto:d@example.com"), want: []string{"dmarc.malformed_element"}},
	{name: "an empty element", zone: own("v=DMARC1; p=reject;; rua=mailto:d@example.com"), want: []string{"dmarc.empty_element"}},
	{name: "more tags than anybody reads", zone: own("v=DMARC1; p=reject" + repeat("; a=b", 120)), want: []string{"dmarc.too_many_tags"}},
	{name: "a long record", zone: own("v=DMARC1; p=reject; rua=mailto:" + repeat("x", 1000) + "@example.com"), want: []string{"dmarc.long_record"}},
	{name: "fo without ruf", zone: own("v=DMARC1; p=reject; fo=1; rua=mailto:d@example.com"), want: []string{"dmarc.unused_failure_options"}},
	{name: "ruf on a public suffix", zone: own("v=DMARC1; p=reject; psd=y; ruf=mailto:d@example.com"), want: []string{"dmarc.failure_reports_on_psd"}},
}

var destinationCases = []findingCase{
	{
		name: "no rua", zone: own("v=DMARC1; p=reject"), want: []string{"dmarc.no_reports"},
		fix: `_dmarc.example.com. TXT "v=DMARC1; p=reject; rua=mailto:dmarc-reports@example.com"`,
	},
	{
		name: "no rua in the record of the parent", domain: "sub.example.com", zone: own("v=DMARC1; p=reject") + "sub.example.com A 192.0.2.4",
		want: []string{"dmarc.no_reports"}, fix: `_dmarc.example.com. TXT "v=DMARC1; p=reject; rua=mailto:dmarc-reports@example.com"`,
	},
	{
		name: "reports go elsewhere", zone: sound, request: dnscheck.Request{ReportAddress: "abc@reports.example.net"},
		want: []string{"dmarc.reports_elsewhere"},
		fix:  `_dmarc.example.com. TXT "v=DMARC1; p=reject; rua=mailto:dmarc@example.com,mailto:abc@reports.example.net"`,
	},
	{name: "reports come here", zone: sound, request: dnscheck.Request{ReportAddress: "DMARC@example.com"}, not: []string{"dmarc.reports_elsewhere"}},
	{name: "an address without mailto", zone: own("v=DMARC1; p=reject; rua=dmarc@example.com"), want: []string{"dmarc.bad_destination"}, not: []string{"dmarc.no_reports"}},
	{name: "a destination by https", zone: own("v=DMARC1; p=reject; rua=https://example.com/r"), want: []string{"dmarc.unsupported_destination"}},
	{name: "a limit of size", zone: own("v=DMARC1; p=reject; rua=mailto:d@example.com!10m"), want: []string{"dmarc.size_limit"}},
	{name: "a destination twice", zone: own("v=DMARC1; p=reject; rua=mailto:d@example.com,mailto:d@example.com"), want: []string{"dmarc.repeated_destination"}},
	{name: "three destinations", zone: own("v=DMARC1; p=reject; rua=mailto:a@example.com,mailto:b@example.com,mailto:c@example.com"), want: []string{"dmarc.many_destinations"}},
	{
		name: "a destination that did not agree", zone: own("v=DMARC1; p=reject; rua=mailto:d@reports.example.net") + "reports.example.net MX 10 mx.example.net",
		want: []string{"dmarc.destination_refused"}, fix: `example.com._report._dmarc.reports.example.net. TXT "v=DMARC1"`,
	},
	{
		name: "a destination that agreed for another host",
		zone: own("v=DMARC1; p=reject; rua=mailto:d@reports.example.net") + "reports.example.net MX 10 mx.example.net\n" +
			`*._report._dmarc.reports.example.net TXT "v=DMARC1; rua=mailto:d@elsewhere.example"`,
		want: []string{"dmarc.destination_refused"}, fix: `example.com._report._dmarc.reports.example.net. TXT "v=DMARC1"`,
	},
	{
		name: "a destination that agreed",
		zone: own("v=DMARC1; p=reject; rua=mailto:d@reports.example.net") + "reports.example.net MX 10 mx.example.net\n" +
			`*._report._dmarc.reports.example.net TXT "v=DMARC1"`,
		not: []string{"dmarc.destination_refused", "dmarc.destination_without_mail"},
	},
	{
		name: "a destination whose lookup fails",
		zone: own("v=DMARC1; p=reject; rua=mailto:d@reports.example.net") + "reports.example.net MX 10 mx.example.net\n" +
			"example.com._report._dmarc.reports.example.net INCONCLUSIVE",
		want: []string{"dmarc.destination_unknown"}, not: []string{"dmarc.destination_refused"},
	},
	{
		name: "a destination that takes no mail", zone: own("v=DMARC1; p=reject; rua=mailto:d@void.example.com") + "void.example.com MX 0 .",
		want: []string{"dmarc.destination_without_mail"},
	},
}

var parkedCases = []findingCase{
	{
		name: "a parked domain that is locked", want: []string{"parked.locked"},
		zone: `example.com MX 0 .
example.com TXT "v=spf1 -all"
_dmarc.example.com TXT "v=DMARC1; p=reject; rua=mailto:d@example.net"
example.com._report._dmarc.example.net TXT "v=DMARC1"
example.net MX 10 mx.example.net`,
		not: []string{"dkim.no_keys", "mta_sts.missing", "tls_rpt.missing", "mx.none", "spf.missing"},
	},
	{
		name: "a parked domain with a weak policy", want: []string{"parked.policy"}, not: []string{"dmarc.policy_none", "parked.locked"},
		request: dnscheck.Request{Parked: true},
		zone: `example.com MX 0 .
example.com TXT "v=spf1 -all"
_dmarc.example.com TXT "v=DMARC1; p=none; sp=none; psd=y; t=y"`,
		fix: `_dmarc.example.com. TXT "v=DMARC1; p=reject; psd=y"`,
	},
	{
		name: "a parked domain that does not look so", want: []string{"parked.policy"}, not: []string{"dmarc.policy_none", "parked.locked"},
		request: dnscheck.Request{Parked: true}, zone: `_dmarc.example.com TXT "v=DMARC1; p=none"`, fix: `_dmarc.example.com. TXT "v=DMARC1; p=reject"`,
	},
	{
		name: "a domain that looks parked, and has no mark", want: []string{"dmarc.policy_none"}, not: []string{"parked.policy", "parked.locked", "parked.spf_open"},
		zone: `example.com MX 0 .
example.com TXT "v=spf1 -all"
_dmarc.example.com TXT "v=DMARC1; p=none"`,
		unproposed: "p=reject",
	},
	{
		name: "a parked domain without reports", want: []string{"parked.no_reports", "parked.locked"}, not: []string{"dmarc.no_reports", "dkim.wildcard", "dkim.not_found"},
		zone: `example.com MX 0 .
example.com TXT "v=spf1 -all"
*._domainkey.example.com TXT "v=DKIM1; p="
_dmarc.example.com TXT "v=DMARC1; p=reject"`,
	},
	{
		name: "a domain that takes no mail and lets others send", want: []string{"parked.spf_open"},
		zone: "example.com MX 0 .\n" + `example.com TXT "v=spf1 a -all"`, fix: `example.com. TXT "v=spf1 -all"`,
	},
	{
		name: "a domain that sends nothing and has no MX record", want: []string{"parked.takes_mail"}, not: []string{"mx.none"},
		zone: `example.com TXT "v=spf1 -all"`, fix: "example.com. MX 0 .",
	},
	{
		name: "a parked domain without anything is told to refuse all", want: []string{"dmarc.missing", "spf.missing", "mx.none"},
		request: dnscheck.Request{Parked: true},
		zone:    "example.com NS ns.example.com", fix: `_dmarc.example.com. TXT "v=DMARC1; p=reject"`,
	},
	{
		name: "a domain without anything or a mark begins with monitoring", want: []string{"dmarc.missing"}, unproposed: "p=reject",
		zone: "example.com NS ns.example.com", fix: `_dmarc.example.com. TXT "v=DMARC1; p=none"`,
	},
	{
		name: "a domain with a purpose is not parked", request: dnscheck.Request{Purpose: "business"},
		zone: "example.com MX 0 .\n" + `example.com TXT "v=spf1 -all"` + "\n" + `_dmarc.example.com TXT "v=DMARC1; p=none"`,
		want: []string{"dmarc.policy_none"}, not: []string{"parked.policy"},
	},
	{
		name: "a domain whose subdomains send mail is not parked", request: dnscheck.Request{Used: true},
		zone: "example.com MX 0 .\n" + `example.com TXT "v=spf1 -all"` + "\n" + `_dmarc.example.com TXT "v=DMARC1; p=none; rua=mailto:d@example.com"`,
		want: []string{"dmarc.policy_none"}, not: []string{"parked.policy", "dkim.no_keys", "mx.none"},
		fix: `_dmarc.example.com. TXT "v=DMARC1; p=quarantine; rua=mailto:d@example.com"`,
	},
	{
		name: "a domain without a record whose subdomains send mail", request: dnscheck.Request{Used: true},
		zone: `example.com TXT "v=spf1 -all"`, want: []string{"dmarc.missing"}, not: []string{"parked.takes_mail"},
		fix: `_dmarc.example.com. TXT "v=DMARC1; p=none"`,
	},
}
