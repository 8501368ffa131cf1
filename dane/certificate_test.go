package dane_test

import (
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/dane"
	"github.com/dmarcd/dmarcd/internal/certtest"
)

// today lies within the dates of every certificate of the tests.
var today = time.Date(2026, time.November, 15, 9, 30, 0, 0, time.UTC)

// issue makes a certificate that lives for a month around today. Without an issuer
// it signs itself, without names it is an authority.
func issue(t *testing.T, issuer *tls.Certificate, subject string, names ...string) *tls.Certificate {
	t.Helper()
	return certtest.New(t, issuer, x509.Certificate{
		Subject: pkix.Name{CommonName: subject}, DNSNames: names, IsCA: len(names) == 0,
		NotBefore: today.AddDate(0, 0, -15), NotAfter: today.AddDate(0, 0, 15),
	})
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
