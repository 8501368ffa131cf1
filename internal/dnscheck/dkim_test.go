package dnscheck_test

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"math/big"
	"testing"

	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

const ed25519Key = "k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="

// rsaRecord returns a key record with a modulus of that many bits.
func rsaRecord(t *testing.T, bits, exponent int) string {
	t.Helper()
	n := new(big.Int).SetBit(big.NewInt(1), bits-1, 1)
	der := musttest.Get(x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: n, E: exponent}))(t)
	return "v=DKIM1; p=" + base64.StdEncoding.EncodeToString(der)
}

// withKey returns the sound zone with another key under the selector s1.
func withKey(record string) string {
	return without("_domainkey") + `s1._domainkey.example.com TXT "` + record + `"` + "\n"
}

func selectors(from dnscheck.Origin, names ...string) dnscheck.Request {
	var request dnscheck.Request
	for _, name := range names {
		request.Selectors = append(request.Selectors, dnscheck.Selector{Name: name, From: from})
	}
	return request
}

func dkimCases(t *testing.T) []findingCase {
	t.Helper()
	return []findingCase{
		{name: "no keys at all", zone: without("_domainkey"), want: []string{"dkim.no_keys"}, not: []string{"dkim.not_found"}},
		{
			name: "keys under unknown selectors", zone: without("_domainkey") + `x7f3._domainkey.example.com TXT "v=DKIM1; ` + ed25519Key + `"`,
			want: []string{"dkim.not_found"}, not: []string{"dkim.no_keys"}, message: "It may still have keys",
		},
		{name: "a selector whose lookup fails", zone: sound + "google._domainkey.example.com INCONCLUSIVE", want: []string{"dkim.inconclusive"}},
		{name: "a wildcard", zone: without("_domainkey") + `*._domainkey.example.com TXT "v=DKIM1; ` + ed25519Key + `"`, want: []string{"dkim.wildcard"}, not: []string{"dkim.found"}},
		{name: "a wildcard that revokes all other keys", zone: sound + `*._domainkey.example.com TXT "v=DKIM1; p="`, want: []string{"dkim.found"}, not: []string{"dkim.wildcard", "dkim.revoked"}},
		{
			name: "an alias that every name has", zone: without("_domainkey", "_smtp", "_dmarc") + "*.example.com CNAME web.example.net\nweb.example.net A 192.0.2.8",
			want: []string{"dkim.not_found", "dmarc.missing", "mta_sts.missing", "tls_rpt.missing"},
			not:  []string{"dkim.dangling_alias", "dmarc.dangling_alias", "mta_sts.dangling_alias", "tls_rpt.dangling_alias"},
		},
		{name: "a selector from reports without a key", zone: sound, request: selectors(dnscheck.FromReport, "mailer7"), want: []string{"dkim.selector_missing"}, message: "mailer7"},
		{name: "a declared selector where there are no keys", zone: without("_domainkey"), request: selectors(dnscheck.FromOwner, "mine"), want: []string{"dkim.selector_missing"}, not: []string{"dkim.no_keys"}},
		{name: "a selector from reports with a key", zone: without("_domainkey") + `x7f3._domainkey.example.com TXT "v=DKIM1; ` + ed25519Key + `"`, request: selectors(dnscheck.FromReport, "x7f3"), want: []string{"dkim.found"}, not: []string{"dkim.not_found"}},
		{name: "a revoked key in use", zone: withKey("v=DKIM1; p="), request: selectors(dnscheck.FromReport, "s1"), want: []string{"dkim.revoked_in_use"}, not: []string{"dkim.revoked"}},
		{name: "a revoked key", zone: withKey("v=DKIM1; p="), want: []string{"dkim.revoked"}, not: []string{"dkim.found"}},
		{name: "a short key", zone: withKey(rsaRecord(t, 512, 65537)), want: []string{"dkim.key_too_short"}},
		{name: "a weak key", zone: withKey(rsaRecord(t, 1024, 65537)), want: []string{"dkim.key_weak"}},
		{name: "a long key", zone: withKey(rsaRecord(t, 6000, 65537)), want: []string{"dkim.key_long"}},
		{name: "an exponent of one", zone: withKey(rsaRecord(t, 2048, 1)), want: []string{"dkim.bad_exponent"}},
		{name: "a large exponent", zone: withKey(rsaRecord(t, 2048, 1<<40+1)), want: []string{"dkim.large_exponent"}},
		{name: "only sha1", zone: withKey("v=DKIM1; h=sha1; " + ed25519Key), want: []string{"dkim.no_usable_hash"}},
		{name: "sha1 beside sha256", zone: withKey("v=DKIM1; h=sha1:sha256; " + ed25519Key), want: []string{"dkim.sha1_allowed"}},
		{name: "a damaged key", zone: withKey("v=DKIM1; p=abc"), want: []string{"dkim.invalid_key"}},
		{name: "a bare key", zone: withKey("v=DKIM1; p=" + bareRSA()), want: []string{"dkim.bare_key"}},
		{name: "an unknown tag in a key", zone: withKey("v=DKIM1; zz=1; " + ed25519Key), want: []string{"dkim.ignored_part"}, message: "the tag zz is unknown"},
		{name: "a key for other services", zone: withKey("v=DKIM1; s=tlsrpt; " + ed25519Key), want: []string{"dkim.not_for_mail"}},
		{name: "a key in test mode", zone: withKey("v=DKIM1; t=y; " + ed25519Key), want: []string{"dkim.testing"}},
		{name: "two keys", zone: withKey("v=DKIM1; "+ed25519Key) + `s1._domainkey.example.com TXT "v=DKIM1; p="`, want: []string{"dkim.multiple_records"}},
		{name: "a text that is no key", zone: withKey("v=DKIM2; " + ed25519Key), want: []string{"dkim.near_miss"}},
		{name: "an alias to no key", zone: without("_domainkey") + "s1._domainkey.example.com CNAME gone.example.net", want: []string{"dkim.dangling_alias"}},
	}
}

// bareRSA returns an RSAPublicKey that is not wrapped.
func bareRSA() string {
	n := new(big.Int).SetBit(big.NewInt(1), 2047, 1)
	return base64.StdEncoding.EncodeToString(x509.MarshalPKCS1PublicKey(&rsa.PublicKey{N: n, E: 65537}))
}
