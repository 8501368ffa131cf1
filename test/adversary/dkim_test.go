package adversary_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/emersion/go-msgauth/dkim"
)

// dkimKey returns the key of a domain, the same every time: it says nothing
// outside the tests.
func dkimKey(domain string) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed([]byte(fmt.Sprintf("%-32.32s", domain)))
}

// dkimZone publishes the keys of domains.
func dkimZone(domains ...string) string {
	var b strings.Builder
	for _, domain := range domains {
		public := dkimKey(domain).Public().(ed25519.PublicKey) // no other kind of key has this type
		fmt.Fprintf(&b, "s1._domainkey.%s. TXT \"v=DKIM1; k=ed25519; p=%s\"\n", domain, base64.StdEncoding.EncodeToString(public))
	}
	return b.String()
}

// signed returns a mail with a signature of a domain.
func signed(t testing.TB, mail, domain string) string {
	t.Helper()
	var out bytes.Buffer
	err := dkim.Sign(&out, strings.NewReader(mail), &dkim.SignOptions{
		Domain: domain, Selector: "s1", Signer: dkimKey(domain), HeaderKeys: []string{"From", "Subject", "Message-Id"},
		HeaderCanonicalization: dkim.CanonicalizationRelaxed, BodyCanonicalization: dkim.CanonicalizationRelaxed,
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}
