package dnscheck_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/outbound"
)

// served is the response of a web server.
type served struct {
	status         int // 200 if 0
	kind, location string
	body           string
}

// policyWeb provides HTTPS servers on loopback with their own root.
type policyWeb struct {
	config *tls.Config
	roots  *x509.CertPool
	// marks is empty: no mark authority is trusted.
	marks *x509.CertPool
	// mail is the certificate of every mail server.
	mail *x509.Certificate
}

// newPolicyWeb makes the certificates.
func newPolicyWeb(t *testing.T) *policyWeb {
	t.Helper()
	w := &policyWeb{roots: x509.NewCertPool(), marks: x509.NewCertPool()}
	authority, authorityKey := certificate(t, nil, nil, nil)
	w.roots.AddCert(authority)
	leaf, key := certificate(t, authority, authorityKey, []string{"mta-sts.example.com", "www.example.com"})
	w.mail = leaf
	w.config = &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{{Certificate: [][]byte{leaf.Raw}, PrivateKey: key}},
	}
	return w
}

// certificate makes a certificate for names, or an authority where issuer is nil.
func certificate(t *testing.T, issuer *x509.Certificate, issuerKey *ecdsa.PrivateKey, names []string) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "dmarcd test"}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		BasicConstraintsValid: true, IsCA: issuer == nil, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	if issuer == nil {
		issuer, issuerKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, &key.PublicKey, issuerKey)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made, key
}

// dialer returns a dialer that connects every address to a web server with these files, by
// host and path. Without files it connects to none.
func (w *policyWeb) dialer(t *testing.T, files map[string]served) outbound.Dialer {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		file, ok := files[r.Host+r.URL.Path]
		if !ok {
			http.NotFound(out, r)
			return
		}
		out.Header().Set("Content-Type", file.kind)
		if file.location != "" {
			out.Header().Set("Location", file.location)
		}
		if file.status != 0 {
			out.WriteHeader(file.status)
		}
		_, _ = out.Write([]byte(file.body)) // the client may have disconnected
	}))
	server.TLS = w.config.Clone()
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients reject certificates on purpose
	server.StartTLS()
	t.Cleanup(server.Close)
	return outbound.Dialer{
		Allow: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")},
		Connect: func(ctx context.Context, network, _ string) (net.Conn, error) {
			if files == nil {
				return nil, errNoServer
			}
			var dialer net.Dialer
			return dialer.DialContext(ctx, network, server.Listener.Addr().String())
		},
	}
}

// errNoServer is the error of a dialer without files.
var errNoServer = errors.New("connection refused by the test")

// dialMX uses the same certificate for every mail server.
func (w *policyWeb) dialMX(context.Context, string, string) ([]*x509.Certificate, error) {
	return []*x509.Certificate{w.mail}, nil
}

// diffFacts compares the facts and findings of two checks.
func diffFacts(a, b dmarcd.Check) string {
	return cmp.Diff(a.Facts, b.Facts) + cmp.Diff(a.Findings, b.Findings)
}
