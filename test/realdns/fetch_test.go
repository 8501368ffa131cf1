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
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dmarcd/dmarcd/internal/certtest"
	"github.com/dmarcd/dmarcd/internal/outbound"
)

// loopback is the network of every server in these tests.
func loopback() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} }

// TestFetch fetches the policy with less trust than the other tests have.
func TestFetch(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	o := startOffice(t)
	tests := []struct {
		name           string
		allow          []netip.Prefix
		roots          *x509.CertPool
		want, finding  string
		reasonContains string
	}{
		{
			name:  "address that is not public",
			roots: o.host.roots,
			want:  "inconclusive", finding: "mta_sts.unreachable", reasonContains: outbound.ErrNotAllowed.Error(),
		},
		{
			name:  "authority that is not trusted",
			allow: loopback(),
			want:  "bad certificate", finding: "mta_sts.bad_certificate", reasonContains: "unknown authority",
		},
		{
			name:  "in order",
			allow: loopback(), roots: o.host.roots,
			want: "ok", finding: "mta_sts.enforced",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			one := *o
			one.options.Dialer = outbound.Dialer{Allow: test.allow, Connect: o.host.dial}
			one.options.WebRoots = test.roots
			got := one.examine(t)
			facts := got.Facts.MTASTS
			if facts.Fetch != test.want || !strings.Contains(facts.FetchReason, test.reasonContains) {
				t.Errorf("got %s, reason %q want %s with %q in it", facts.Fetch, facts.FetchReason, test.want, test.reasonContains)
			}
			wantFindings(t, got, test.finding)
		})
	}
}

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

// dial connects to the web server instead of port 443 of loopback, which a
// test may not listen on. It refuses every other address: that one is what the
// zone holds.
func (h *policyHost) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if address != "127.0.0.1:443" {
		return nil, fmt.Errorf("connect to %s: only the policy host can be reached", address)
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, network, h.server.Listener.Addr().String())
}
