// Package certtest makes certificates for tests. Chains and trust are up to the test.
package certtest

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// New creates a certificate from a template, with a new key. Without an issuer it is
// self-signed. Unless the template sets times, it is valid from an hour ago for two hours.
func New(t testing.TB, issuer *tls.Certificate, template x509.Certificate) *tls.Certificate {
	t.Helper()
	key := musttest.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template.SerialNumber, template.BasicConstraintsValid = big.NewInt(1), true
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	issuer = cmp.Or(issuer, &tls.Certificate{Leaf: &template, PrivateKey: key})
	der := musttest.Get(x509.CreateCertificate(rand.Reader, &template, issuer.Leaf, key.Public(), issuer.PrivateKey))(t)
	leaf := musttest.Get(x509.ParseCertificate(der))(t)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}
