package dnscheck_test

import "strings"

const (
	bimiRecord = `default._bimi.example.com TXT "v=BIMI1; l=https://www.example.com/logo.svg; a=https://www.example.com/mark.pem"` + "\n"
	bareBIMI   = `default._bimi.example.com TXT "v=BIMI1; l=https://www.example.com/logo.svg"` + "\n"
	webHost    = "www.example.com A 127.0.0.1\n"
	logo       = `<svg xmlns="http://www.w3.org/2000/svg" version="1.2" baseProfile="tiny-ps" viewBox="0 0 10 10"><title>Example</title><rect width="10" height="10"/></svg>`
	wideLogo   = `<svg xmlns="http://www.w3.org/2000/svg" version="1.2" baseProfile="tiny-ps" viewBox="0 0 20 10"><title>Example</title><rect width="10" height="10"/></svg>`
)

// branded returns a web with a logo and a document.
func branded(image string, document string) map[string]served {
	return map[string]served{
		"www.example.com/logo.svg": {kind: "image/svg+xml", body: image},
		"www.example.com/mark.pem": {kind: "application/x-pem-file", body: document},
	}
}

// declined opts out of BIMI.
const declined = `default._bimi.example.com TXT "v=BIMI1; l=; a=;"` + "\n"

var bimiCases = []findingCase{
	{name: "no BIMI record", zone: sound, not: []string{"bimi.inconclusive"}},
	{name: "BIMI declined", zone: sound + declined, not: []string{"bimi.no_evidence", "bimi.invalid_record"}},
	{name: "a logo on a silent server", zone: sound + bareBIMI + webHost, want: []string{"bimi.inconclusive"}},
	{
		name: "a logo with a long address on a silent server", zone: sound + strings.ReplaceAll(bareBIMI, "logo.svg", strings.Repeat("logo", 80)+".svg") + webHost,
		want: []string{"bimi.inconclusive"}, message: "logolo…",
	},
	{name: "two BIMI records", zone: sound + bareBIMI + bimiRecord, want: []string{"bimi.multiple_records"}},
	{name: "a BIMI record without https", zone: sound + `default._bimi.example.com TXT "v=BIMI1; l=http://www.example.com/logo.svg"`, want: []string{"bimi.invalid_record"}},
	{name: "an unknown tag of BIMI", zone: sound + `default._bimi.example.com TXT "v=BIMI1; l=https://www.example.com/logo.svg; foo=bar"` + "\n" + webHost, files: branded(logo, ""), want: []string{"bimi.ignored_part"}},
	{name: "a logo without a certificate", zone: sound + bareBIMI + webHost, files: branded(logo, ""), want: []string{"bimi.no_evidence"}, not: []string{"bimi.image"}},
	{name: "a logo and the policy none", zone: own("v=DMARC1; p=none; rua=mailto:d@example.com") + bareBIMI + webHost, files: branded(logo, ""), want: []string{"bimi.policy"}},
	{
		name: "a logo of a subdomain whose organization has the policy none", domain: "sub.example.com",
		zone: own("v=DMARC1; p=none; rua=mailto:d@example.com") + `_dmarc.sub.example.com TXT "v=DMARC1; p=reject"` + "\n" +
			strings.ReplaceAll(bareBIMI, "_bimi.", "_bimi.sub.") + webHost,
		files: branded(logo, ""), want: []string{"bimi.policy"},
	},
	{
		name: "a logo of a subdomain that inherits another policy than its organization has", domain: "sub.example.com",
		zone:  own("v=DMARC1; p=none; sp=reject; rua=mailto:d@example.com") + strings.ReplaceAll(bareBIMI, "_bimi.", "_bimi.sub.") + webHost,
		files: branded(logo, ""), want: []string{"bimi.policy"}, message: "the DMARC policy of example.com is none",
	},
	{
		name: "a logo of a subdomain that inherits an enforced policy", domain: "sub.example.com",
		zone:  own("v=DMARC1; p=quarantine; sp=reject; rua=mailto:d@example.com") + strings.ReplaceAll(bareBIMI, "_bimi.", "_bimi.sub.") + webHost,
		files: branded(logo, ""), not: []string{"bimi.policy"},
	},
	{
		name: "a logo of a subdomain whose organization enforces too", domain: "sub.example.com",
		zone: sound + `_dmarc.sub.example.com TXT "v=DMARC1; p=reject"` + "\n" +
			strings.ReplaceAll(bareBIMI, "_bimi.", "_bimi.sub.") + webHost,
		files: branded(logo, ""), not: []string{"bimi.policy"},
	},
	{name: "a logo that is no SVG", zone: sound + bareBIMI + webHost, files: branded("GIF89a", ""), want: []string{"bimi.image"}},
	{name: "a logo that is not square", zone: sound + bareBIMI + webHost, files: branded(wideLogo, ""), want: []string{"bimi.image_shape"}},
	{name: "a logo that is not there", zone: sound + bareBIMI + webHost, files: map[string]served{}, want: []string{"bimi.fetch"}},
	{name: "a certificate file without one", zone: sound + bimiRecord + webHost, files: branded(logo, "nothing"), want: []string{"bimi.evidence"}},
}
