package adversary_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// policyHost is an HTTPS host inside the network of the daemon, with an MTA-STS policy
// and a certificate for every name of a domain.
type policyHost struct {
	address string
	hits    atomic.Int64 // connections
	roots   string       // the file with the authority of its certificate
}

// startPolicyHost listens on port 443 of an address that only this test uses.
func startPolicyHost(t testing.TB, domain string) *policyHost {
	t.Helper()
	h := &policyHost{address: fmt.Sprintf("127.77.%d.%d", os.Getpid()/250%250, 1+os.Getpid()%250)}
	listener, err := net.Listen("tcp", h.address+":443")
	if err != nil {
		t.Fatalf("a policy is served on port 443: run the test as root, or set net.ipv4.ip_unprivileged_port_start to 443: %v", err)
	}
	certificate := newCertificate(t, domain)
	h.roots = filepath.Join(t.TempDir(), "roots.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})
	if err := os.WriteFile(h.roots, block, 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "version: STSv1\r\nmode: enforce\r\nmx: mx."+domain+"\r\nmax_age: 86400\r\n") // a client that left needs none
	}))
	_ = server.Listener.Close() // it has another one
	server.Listener = listener
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			h.hits.Add(1)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	return h
}

// newCertificate returns a certificate for the policy host of a domain that is its own
// authority.
func newCertificate(t testing.TB, domain string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: domain}, DNSNames: []string{"mta-sts." + domain},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	octets, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{octets}, PrivateKey: key}
}
