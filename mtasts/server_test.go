package mtasts_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/certtest"
)

// now is the time by which the client judges certificates.
var now = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

// authority issues certificates that its clients trust.
type authority struct{ certificate *tls.Certificate }

func newAuthority(t *testing.T) authority {
	t.Helper()
	return authority{certtest.New(t, nil, x509.Certificate{
		Subject: pkix.Name{CommonName: "Test Authority"}, NotBefore: now.AddDate(-1, 0, 0), NotAfter: now.AddDate(1, 0, 0),
		IsCA: true, KeyUsage: x509.KeyUsageCertSign,
	})}
}

// issue returns a certificate for a host that is good until a time.
func (a authority) issue(t *testing.T, host string, until time.Time) tls.Certificate {
	t.Helper()
	return *certtest.New(t, a.certificate, x509.Certificate{
		Subject: pkix.Name{CommonName: "mta-sts.example.com"}, DNSNames: []string{host},
		NotBefore: now.AddDate(-1, 0, 0), NotAfter: until,
	})
}

// serve starts a web server on loopback and returns a client that trusts the
// authority and reaches the server under every name.
func (a authority) serve(t *testing.T, certificate tls.Certificate, handler http.Handler) *http.Client {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(a.certificate.Leaf)
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, server.Listener.Addr().String())
		},
		TLSClientConfig: &tls.Config{RootCAs: roots, Time: func() time.Time { return now }},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// answer returns a handler that sends the same to everybody.
func answer(code int, mediaType, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{mediaType}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body) // the client may have enough
	})
}
