package realdns_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// mailZones returns a domain that has all that a mail domain can have, with
// mistakes nowhere, and the zone of the provider that it has hired. The mail
// server presents the certificate.
func mailZones(t *testing.T, certificate *x509.Certificate) []zone {
	t.Helper()
	const domain = `
@             MX    10 mail
@             TXT   "v=spf1 mx include:_spf.provider.test -all"
mail          A     192.0.2.25
mail          AAAA  2001:db8::25
_25._tcp.mail TLSA  3 1 1 %s
_25._tcp.mail TLSA  3 1 1 %s
_dmarc        TXT   "v=DMARC1; p=reject; rua=mailto:dmarc@provider.test"
s1._domainkey TXT   %s
s2._domainkey CNAME example.dkim.provider.test.
_mta-sts      TXT   "v=STSv1; id=1"
mta-sts       A     127.0.0.1
_smtp._tls    TXT   "v=TLSRPTv1; rua=mailto:tls@provider.test"
`
	const provider = `
@             MX    10 mail
mail          A     192.0.2.26
_spf          TXT   "v=spf1 ip4:192.0.2.64/28 -all"
example.dkim  TXT   "v=DKIM1; k=ed25519; p=%s"
example.test._report._dmarc TXT "v=DMARC1"
`
	ofThisKey := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
	ofTheNextKey := sha256.Sum256([]byte("a key that is not in use yet"))
	long := characterStrings("v=DKIM1; k=rsa; p=" + newRSAKey(t))
	return []zone{
		{name: "example.test", signing: signed, records: fmt.Sprintf(domain, hexadecimal(ofThisKey), hexadecimal(ofTheNextKey), long)},
		{name: "provider.test", records: fmt.Sprintf(provider, newEd25519Key(t))},
	}
}

func hexadecimal(digest [sha256.Size]byte) string { return fmt.Sprintf("%x", digest) }

// newRSAKey returns a public key as a DKIM record holds it. It takes more than one
// string of a TXT record.
func newRSAKey(t *testing.T) string {
	t.Helper()
	key := musttest.Get(rsa.GenerateKey(rand.Reader, 2048))(t)
	encoded := musttest.Get(x509.MarshalPKIXPublicKey(&key.PublicKey))(t)
	return base64.StdEncoding.EncodeToString(encoded)
}

// newEd25519Key is newRSAKey for the keys of RFC 8463.
func newEd25519Key(t *testing.T) string {
	t.Helper()
	key, _, err := ed25519.GenerateKey(rand.Reader)
	musttest.Do(t, err)
	return base64.StdEncoding.EncodeToString(key)
}

// edited returns zones in which a text of one of them is replaced.
func edited(t *testing.T, zones []zone, name, old, replacement string) []zone {
	t.Helper()
	changed := make([]zone, len(zones))
	found := false
	for i, z := range zones {
		if z.name == name && strings.Contains(z.records, old) {
			found = true
			z.records = strings.Replace(z.records, old, replacement, 1)
		}
		changed[i] = z
	}
	if !found {
		t.Fatalf("%s does not hold %q", name, old)
	}
	return changed
}
