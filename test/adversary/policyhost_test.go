package adversary_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// policyDomain is the domain of a policy host: httptest has a certificate for its hosts.
const policyDomain = "example.com"

// policyHost is an HTTPS host inside the network of the daemon, with an MTA-STS policy.
type policyHost struct {
	address string
	hits    atomic.Int64 // connections
	roots   string       // the file with the authority of its certificate
}

// startPolicyHost listens on port 443 of an address that only this test uses.
func startPolicyHost(t testing.TB) *policyHost {
	t.Helper()
	h := &policyHost{address: fmt.Sprintf("127.77.%d.%d", os.Getpid()/250%250, 1+os.Getpid()%250)}
	listener, err := net.Listen("tcp", h.address+":443")
	if err != nil {
		t.Fatalf("a policy is served on port 443: run the test as root, or set net.ipv4.ip_unprivileged_port_start to 443: %v", err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "version: STSv1\r\nmode: enforce\r\nmx: mx."+policyDomain+"\r\nmax_age: 86400\r\n") // a client that left needs none
	}))
	_ = server.Listener.Close() // it has another one
	server.Listener = listener
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			h.hits.Add(1)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	h.roots = filepath.Join(t.TempDir(), "roots.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(h.roots, block, 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}
