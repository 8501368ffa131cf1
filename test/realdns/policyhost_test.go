package realdns_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/dmarcd/dmarcd/internal/certtest"
)

// policyHost is the web server of an MTA-STS policy, on loopback, with a
// certificate from an authority of its own.
type policyHost struct {
	server *httptest.Server
	roots  *x509.CertPool
	policy atomic.Pointer[string]
}

// startPolicyHost starts a web server for a host and stops it when the test ends.
func startPolicyHost(t *testing.T, host string) *policyHost {
	t.Helper()
	root := certtest.New(t, nil, x509.Certificate{Subject: pkix.Name{CommonName: "root"}, IsCA: true, KeyUsage: x509.KeyUsageCertSign})
	leaf := certtest.New(t, root, x509.Certificate{DNSNames: []string{host}})
	h := &policyHost{roots: x509.NewCertPool()}
	h.roots.AddCert(root.Leaf)
	h.serve("")
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+host+"/.well-known/mta-sts.txt", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write([]byte(*h.policy.Load())) // a client that went away needs no policy
	})
	h.server = httptest.NewUnstartedServer(mux)
	h.server.TLS = &tls.Config{Certificates: []tls.Certificate{*leaf}, MinVersion: tls.VersionTLS12}
	h.server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that refuse the certificate are meant to
	h.server.StartTLS()
	t.Cleanup(h.server.Close)
	return h
}

// serve sets the policy.
func (h *policyHost) serve(policy string) { h.policy.Store(&policy) }

// dial connects to the web server in the place of port 443 of loopback, which a
// test may not listen on. It refuses every other address: that one is what the
// zone holds.
func (h *policyHost) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if address != "127.0.0.1:443" {
		return nil, fmt.Errorf("connect to %s: only the policy host can be reached", address)
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, network, h.server.Listener.Addr().String())
}
