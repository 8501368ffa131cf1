package dnscheck_test

import (
	"time"

	"github.com/dmarcd/dmarcd/internal/dnscheck"
)

const (
	policyPath = "mta-sts.example.com/.well-known/mta-sts.txt"
	stsRecord  = `_mta-sts.example.com TXT "v=STSv1; id=1;"` + "\nmta-sts.example.com A 127.0.0.1\n"
)

// policy returns a web with an MTA-STS policy.
func policy(body string) map[string]served {
	return map[string]served{policyPath: {kind: "text/plain", body: body}}
}

var enforced = policy("version: STSv1\nmode: enforce\nmx: mx.example.com\nmax_age: 2419200\n")

// mailed returns the sound zone with other MX records.
func mailed(records string) string { return without("MX ", "mx.example.com ") + records + "\n" }

// protected returns the sound zone with TLSA records for its mail server.
func protected(records string) string { return sound + records + "\n" }

const (
	goodTLSA  = "_25._tcp.mx.example.com TLSA 030101 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"
	otherTLSA = "_25._tcp.mx.example.com TLSA 030101 ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"
	pkixTLSA  = "_25._tcp.mx.example.com TLSA 010101 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"
)

// tlsWays are the expected destinations of TLS reports.
var tlsWays = []string{"mailto:abc@reports.example.net", "https://dmarc.example.net/tlsrpt/abc"}

var transportCases = []findingCase{
	{name: "no answer for MX", zone: mailed("example.com MX INCONCLUSIVE"), want: []string{"mx.inconclusive"}, not: []string{"mx.none"}},
	{name: "no MX and no address", zone: mailed(""), want: []string{"mx.none"}, not: []string{"mta_sts.missing"}},
	{name: "no MX but an address", zone: mailed("example.com A 192.0.2.8"), want: []string{"mx.implicit"}, message: "192.0.2.8"},
	{name: "a null MX beside others", zone: sound + "example.com MX 0 .", want: []string{"mx.null_beside_others"}},
	{name: "an MX that is an alias", zone: mailed("example.com MX 10 a.example.com\na.example.com CNAME b.example.com\nb.example.com A 192.0.2.8"), want: []string{"mx.alias"}, fix: "example.com. MX 10 b.example.com."},
	{name: "an MX that does not exist", zone: mailed("example.com MX 10 gone.example.net"), want: []string{"mx.dangling"}},
	{name: "an MX without an address", zone: mailed("example.com MX 10 t.example.com\n" + `t.example.com TXT "x"`), want: []string{"mx.no_address"}},
	{name: "an address as MX", zone: mailed("example.com MX 10 192.0.2.9"), want: []string{"mx.address_as_name"}, not: []string{"mx.dangling"}},

	{name: "no answer for MTA-STS", zone: sound + "_mta-sts.example.com INCONCLUSIVE", want: []string{"mta_sts.inconclusive"}, not: []string{"mta_sts.missing"}},
	{name: "a policy in force", zone: sound + stsRecord, files: enforced, want: []string{"mta_sts.enforced"}, not: []string{"mta_sts.missing"}},
	{name: "two MTA-STS records", zone: sound + stsRecord + `_mta-sts.example.com TXT "v=STSv1; id=2"`, want: []string{"mta_sts.multiple_records"}},
	{name: "an MTA-STS record without an id", zone: sound + `_mta-sts.example.com TXT "v=STSv1;"`, want: []string{"mta_sts.invalid_record"}},
	{name: "an MTA-STS near miss", zone: sound + `_mta-sts.example.com TXT "v=STSv1 id=1"`, want: []string{"mta_sts.near_miss"}, not: []string{"mta_sts.missing"}},
	{name: "an MTA-STS alias to nothing", zone: sound + "_mta-sts.example.com CNAME gone.example.net", want: []string{"mta_sts.dangling_alias"}},
	{
		name: "a policy host without an address", zone: sound + `_mta-sts.example.com TXT "v=STSv1; id=1"`,
		want: []string{"mta_sts.no_host"}, not: []string{"mta_sts.unreachable"},
	},
	{
		name: "a policy host that cannot be looked up", zone: sound + `_mta-sts.example.com TXT "v=STSv1; id=1"` + "\nmta-sts.example.com INCONCLUSIVE",
		want: []string{"mta_sts.unreachable"}, not: []string{"mta_sts.no_host"},
	},
	{name: "a policy host that is silent", zone: sound + stsRecord, want: []string{"mta_sts.unreachable"}},
	{
		name: "a certificate for another host", domain: "other.example.com",
		zone:  "other.example.com MX 10 mx.example.com\nmx.example.com A 192.0.2.1\n" + `_mta-sts.other.example.com TXT "v=STSv1; id=1"` + "\nmta-sts.other.example.com A 127.0.0.1",
		files: enforced, want: []string{"mta_sts.bad_certificate"},
	},
	{
		name: "a certificate at the end of its life", zone: sound + stsRecord, files: enforced, // it is valid for another hour
		now: func() time.Time { return time.Now().Add(50 * time.Minute) }, want: []string{"mta_sts.certificate_expires"},
	},
	{name: "a redirect", zone: sound + stsRecord, files: map[string]served{policyPath: {status: 301, location: "https://www.example.com/"}}, want: []string{"mta_sts.redirect"}},
	{name: "no policy file", zone: sound + stsRecord, files: map[string]served{}, want: []string{"mta_sts.bad_status"}},
	{name: "a policy without a mode", zone: sound + stsRecord, files: policy("version: STSv1\nmx: mx.example.com\nmax_age: 2419200\n"), want: []string{"mta_sts.invalid_policy"}},
	{name: "a policy as HTML", zone: sound + stsRecord, files: map[string]served{policyPath: {kind: "text/html", body: enforced[policyPath].body}}, want: []string{"mta_sts.media_type"}},
	{
		name: "a policy for other servers", zone: sound + stsRecord, files: policy("version: STSv1\nmode: enforce\nmx: old.example.com\nmax_age: 2419200\n"),
		want: []string{"mta_sts.mx_not_covered", "mta_sts.pattern_unused"}, not: []string{"mta_sts.enforced"},
	},
	{name: "a short max_age", zone: sound + stsRecord, files: policy("version: STSv1\nmode: enforce\nmx: mx.example.com\nmax_age: 3600\n"), want: []string{"mta_sts.short_max_age"}},
	{name: "a policy in test mode", zone: sound + stsRecord, files: policy("version: STSv1\nmode: testing\nmx: mx.example.com\nmax_age: 2419200\n"), want: []string{"mta_sts.testing"}},
	{name: "a policy that is withdrawn", zone: sound + stsRecord, files: policy("version: STSv1\nmode: none\nmax_age: 60\n"), want: []string{"mta_sts.withdrawn"}},
	{name: "an unknown field in a policy", zone: sound + stsRecord, files: policy(enforced[policyPath].body + "foo: bar\n"), want: []string{"mta_sts.untidy"}, message: "the field foo is unknown"},

	{name: "no answer for TLS-RPT", zone: without("_smtp._tls") + "_smtp._tls.example.com INCONCLUSIVE", want: []string{"tls_rpt.inconclusive"}, not: []string{"tls_rpt.missing"}},
	{name: "no TLS-RPT record", zone: without("_smtp._tls"), want: []string{"tls_rpt.missing"}, fix: `_smtp._tls.example.com. TXT "v=TLSRPTv1; rua=mailto:tls-reports@example.com"`},
	{name: "two TLS-RPT records", zone: sound + `_smtp._tls.example.com TXT "v=TLSRPTv1; rua=mailto:x@example.com"`, want: []string{"tls_rpt.multiple_records"}},
	{name: "a TLS-RPT record without rua", zone: without("_smtp._tls") + `_smtp._tls.example.com TXT "v=TLSRPTv1;"`, want: []string{"tls_rpt.invalid_record"}},
	{name: "a TLS-RPT near miss", zone: without("_smtp._tls") + `_smtp._tls.example.com TXT "v=TLSRPT1; rua=mailto:x@example.com"`, want: []string{"tls_rpt.near_miss"}},
	{name: "a TLS-RPT alias to nothing", zone: without("_smtp._tls") + "_smtp._tls.example.com CNAME gone.example.net", want: []string{"tls_rpt.dangling_alias"}},
	{name: "TLS reports go elsewhere", zone: sound, request: dnscheck.Request{TLSReportURIs: []string{"mailto:abc@reports.example.net"}}, want: []string{"tls_rpt.reports_elsewhere"}, fix: `_smtp._tls.example.com. TXT "v=TLSRPTv1; rua=mailto:tls@example.com,mailto:abc@reports.example.net"`},
	{name: "TLS reports go elsewhere, and may come in two ways", zone: sound, request: dnscheck.Request{TLSReportURIs: tlsWays}, want: []string{"tls_rpt.reports_elsewhere"}, fix: `_smtp._tls.example.com. TXT "v=TLSRPTv1; rua=mailto:tls@example.com,mailto:abc@reports.example.net,https://dmarc.example.net/tlsrpt/abc"`},
	{name: "TLS reports come by mail alone", zone: without("_smtp._tls") + `_smtp._tls.example.com TXT "v=TLSRPTv1; rua=mailto:ABC@reports.example.net"`, request: dnscheck.Request{TLSReportURIs: tlsWays}, not: []string{"tls_rpt.reports_elsewhere"}},
	{name: "TLS reports come by HTTPS alone", zone: without("_smtp._tls") + `_smtp._tls.example.com TXT "v=TLSRPTv1; rua=https://dmarc.example.net/tlsrpt/abc"`, request: dnscheck.Request{TLSReportURIs: tlsWays}, not: []string{"tls_rpt.reports_elsewhere"}},
	{name: "no TLS-RPT record, and two ways", zone: without("_smtp._tls"), request: dnscheck.Request{TLSReportURIs: tlsWays}, want: []string{"tls_rpt.missing"}, fix: `_smtp._tls.example.com. TXT "v=TLSRPTv1; rua=mailto:abc@reports.example.net,https://dmarc.example.net/tlsrpt/abc"`},
	{name: "what is fixed keeps its destinations", zone: without("_smtp._tls") + `_smtp._tls.example.com TXT "v=TLSRPTv1; rua=mailto:abc@reports.example.net; ;"`, request: dnscheck.Request{TLSReportURIs: tlsWays}, want: []string{"tls_rpt.invalid_record"}, fix: `_smtp._tls.example.com. TXT "v=TLSRPTv1; rua=mailto:abc@reports.example.net"`},
	{name: "an unknown field of TLS-RPT", zone: without("_smtp._tls") + `_smtp._tls.example.com TXT "v=TLSRPTv1; rua=mailto:x@example.com; foo=bar"`, want: []string{"tls_rpt.untidy"}, message: "the field foo is unknown"},

	{name: "no answer for TLSA", zone: sound + "_25._tcp.mx.example.com INCONCLUSIVE", signed: []string{"example.com"}, want: []string{"dane.inconclusive"}},
	{name: "a TLSA record that is not for mail", zone: protected(pkixTLSA + goodTLSA), signed: []string{"example.com"}, want: []string{"dane.unusable_record"}},
	{name: "no usable TLSA record", zone: protected(pkixTLSA), signed: []string{"example.com"}, want: []string{"dane.no_usable_record"}},
	{name: "an unusable TLSA record without DNSSEC", zone: protected(pkixTLSA), want: []string{"dane.without_dnssec"}, not: []string{"dane.unusable_record", "dane.no_usable_record"}},
	{name: "TLSA without DNSSEC", zone: protected(goodTLSA + otherTLSA), want: []string{"dane.without_dnssec"}, not: []string{"dane.protected"}},
	{
		name: "MX without DNSSEC", signed: []string{"example.net"}, want: []string{"dane.mx_without_dnssec"},
		zone: mailed("example.com MX 10 mx.example.net\nmx.example.net A 192.0.2.1\n_25._tcp.mx.example.net TLSA 030101 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"),
	},
	{name: "one server without TLSA", zone: protected(goodTLSA + otherTLSA + "example.com MX 20 m2.example.com\nm2.example.com A 192.0.2.2"), signed: []string{"example.com"}, want: []string{"dane.missing_for_host"}},
	{name: "one TLSA record", zone: protected(goodTLSA), signed: []string{"example.com"}, want: []string{"dane.single_record", "dane.protected"}},
	{name: "a certificate that TLSA does not name", zone: protected(goodTLSA + otherTLSA), signed: []string{"example.com"}, probed: true, want: []string{"dane.no_match"}, not: []string{"dane.protected"}},
	{
		name: "a mail server's certificate at the end of its life", zone: sound, probed: true,
		now: func() time.Time { return time.Now().Add(50 * time.Minute) }, want: []string{"starttls.certificate_expires"}, message: "mx.example.com expires on",
	},
	{
		name: "a mail server's certificate that has expired", zone: sound, probed: true,
		now: func() time.Time { return time.Now().Add(2 * time.Hour) }, want: []string{"starttls.certificate_expired"}, not: []string{"starttls.certificate_expires"},
	},
	{name: "a mail server's certificate that is valid", zone: sound, probed: true, now: time.Now, not: []string{"starttls.certificate_expires", "starttls.certificate_expired"}},
	{name: "more servers than anybody has", zone: sound + numbered("example.com MX 20 m%d.example.com\n", 25) + numbered("m%d.example.com A 192.0.2.2\n", 25), want: []string{"dane.too_many_hosts"}},

	{name: "no answer for the zone", zone: without("SOA") + "example.com SOA INCONCLUSIVE", want: []string{"dnssec.inconclusive"}},
	{name: "a signed zone", zone: sound + "example.com DS 00010d02\nexample.com DNSKEY 00", signed: []string{"example.com"}, want: []string{"dnssec.signed"}},
	{name: "a signed zone and a resolver that does not validate", zone: sound + "example.com DS 00010d02\nexample.com DNSKEY 00", want: []string{"dnssec.unvalidated"}},
	{name: "keys without a DS record", zone: sound + "example.com DNSKEY 00", want: []string{"dnssec.undelegated"}},
	{name: "a DS record without keys", zone: sound + "example.com DS 00010d02", want: []string{"dnssec.broken"}},
	{name: "a weak algorithm", zone: sound + "example.com DS 00010501\nexample.com DNSKEY 00", signed: []string{"example.com"}, want: []string{"dnssec.weak_algorithm"}, message: "RSASHA1 and SHA-1 digest"},
	{name: "a weak digest beside a strong one", zone: sound + "example.com DS 00010d01\nexample.com DS 00010d02\nexample.com DNSKEY 00", signed: []string{"example.com"}, not: []string{"dnssec.weak_algorithm"}},
}
