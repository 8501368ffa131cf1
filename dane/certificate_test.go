package dane_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/dane"
)

// today lies within the dates of every certificate of the tests.
var today = time.Date(2026, time.November, 15, 9, 30, 0, 0, time.UTC)

// authority is a certificate that can issue others.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// issue makes a certificate that lives for a month around today. Without an issuer
// it signs itself, without names it is an authority.
func issue(t *testing.T, issuer *authority, subject string, names ...string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: subject},
		NotBefore:             today.AddDate(0, 0, -15),
		NotAfter:              today.AddDate(0, 0, 15),
		DNSNames:              names,
		IsCA:                  len(names) == 0,
		BasicConstraintsValid: true,
	}
	parent, signer := template, key
	if issuer != nil {
		parent, signer = issuer.certificate, issuer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{certificate, key}
}

// recordOf returns the TLSA record of the given parameters that matches c.
func recordOf(usage dane.Usage, selector dane.Selector, matching dane.Matching, c *x509.Certificate) dane.Record {
	part := c.Raw
	if selector == dane.PublicKey {
		part = c.RawSubjectPublicKeyInfo
	}
	switch matching {
	case dane.SHA256:
		sum := sha256.Sum256(part)
		part = sum[:]
	case dane.SHA512:
		sum := sha512.Sum512(part)
		part = sum[:]
	}
	return dane.Record{Usage: usage, Selector: selector, Matching: matching, Data: part}
}
