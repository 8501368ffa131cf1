package dnscheck_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd/internal/certtest"
	"github.com/dmarcd/dmarcd/internal/facts"
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
	authority := certtest.New(t, nil, x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, KeyUsage: x509.KeyUsageCertSign})
	w.roots.AddCert(authority.Leaf)
	leaf := certtest.New(t, authority, x509.Certificate{DNSNames: []string{"mta-sts.example.com", "www.example.com"}})
	w.mail = leaf.Leaf
	w.config = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*leaf}}
	return w
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
func diffFacts(a, b facts.Check) string {
	return cmp.Diff(a.Facts, b.Facts, cmpopts.EquateComparable(netip.Prefix{})) + cmp.Diff(a.Findings, b.Findings)
}
