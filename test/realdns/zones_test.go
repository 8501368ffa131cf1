package realdns_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// largeText returns the text of one record that is more than the resolver takes
// over UDP.
func largeText() string { return strings.Repeat("0123456789", 600) }

// nameZones returns zones with one of each thing that a question can run into.
func nameZones() []zone {
	return []zone{
		{name: "example.test", signing: signed, records: `
plain     TXT   "plain text"
parts     TXT   "in " "three " "parts"
octets    TXT   "\"\\\000\195\188\255"
empty     TXT   ""
several   TXT   "first"
several   TXT   "second"
large     TXT   ` + characterStrings(largeText()) + `
@         MX    20 mail.unsigned.test.
@         MX    10 mail
mail      A     192.0.2.25
mail      AAAA  2001:db8::25
reverse   PTR   mail
tlsa      TLSA  3 1 1 ` + strings.Repeat("ab", 32) + `
below.ent TXT   "makes ent an empty non-terminal"
*.wild    TXT   "from the wildcard"
host.wild A     192.0.2.1
tree      DNAME plain.tree2
x.plain.tree2 TXT "below a DNAME"
alias     CNAME plain
toalias   CNAME alias
todata    CNAME mail
tomissing CNAME missing
tounsigned CNAME plain.unsigned.test.
toforged  CNAME plain.forged.test.
toforeign CNAME www.example.org.
circle1   CNAME circle2
circle2   CNAME circle1
` + aliasChain(9)},
		{name: "unsigned.test", records: `plain TXT "unsigned text"
tosigned CNAME plain.example.test.`},
		{name: "forged.test", signing: signed, vouched: wrongly, records: `plain TXT "forged text"`},
		{name: "compact.test", signing: compact, records: `plain TXT "signed when asked"`},
	}
}

// characterStrings writes a text as the strings of a TXT record.
func characterStrings(text string) string {
	return `"` + strings.Join(inStrings(text), `" "`) + `"`
}

// inStrings cuts a text into pieces that each fit a string of a TXT record, which
// has 255 octets at most.
func inStrings(text string) []string {
	var pieces []string
	for piece := range slices.Chunk([]byte(text), 255) {
		pieces = append(pieces, string(piece))
	}
	return pieces
}

// aliasChain returns records by which the name chainN is N aliases away from a
// text.
func aliasChain(length int) string {
	records := "chain0 TXT \"the end of the chain\"\n"
	for i := range length {
		records += fmt.Sprintf("chain%d CNAME chain%d\n", i+1, i)
	}
	return records
}

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
