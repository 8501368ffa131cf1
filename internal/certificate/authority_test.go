package certificate_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/certificate"
	"github.com/dmarcd/dmarcd/internal/certtest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/internal/secret"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

const (
	host     = "dmarc.test"
	patience = time.Minute
)

// world is a host that the authority pebble can connect to.
type world struct {
	t         *testing.T
	db        storetest.DB
	secrets   *secret.Keys
	listener  net.Listener
	directory string
	folder    string
	httpPort  int
	roots     *x509.CertPool // of the server of the authority
}

// newWorld reserves the ports of the host and of the authority.
func newWorld(t *testing.T, db storetest.DB) *world {
	t.Helper()
	w := &world{t: t, db: db, folder: t.TempDir(), roots: x509.NewCertPool()}
	w.secrets = secret.File(filepath.Join(w.folder, "secret.key"))
	musttest.Get(w.secrets.Subkey("test"))(t) // creates it
	w.listener = w.listen()
	free, http := w.listen(), w.listen()
	w.httpPort = http.Addr().(*net.TCPAddr).Port
	musttest.Do(t, free.Close())
	musttest.Do(t, http.Close())
	w.directory = "https://" + free.Addr().String() + "/dir"
	server := certtest.New(t, nil, x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	w.roots.AddCert(server.Leaf)
	writePair(t, server, w.file("server.crt"), w.file("server.key"))
	return w
}

func (w *world) listen() net.Listener {
	w.t.Helper()
	listener := musttest.Get((&net.ListenConfig{}).Listen(w.t.Context(), "tcp", "127.0.0.1:0"))(w.t)
	w.t.Cleanup(func() { _ = listener.Close() })
	return listener
}

func (w *world) file(name string) string { return filepath.Join(w.folder, name) }

// startAuthority starts pebble, whose certificates are valid for that long.
func (w *world) startAuthority(life time.Duration) *daemon.Output {
	w.t.Helper()
	dns := resolvertest.Start(w.t, host+". A 127.0.0.1")
	content := musttest.Get(json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": strings.TrimSuffix(strings.TrimPrefix(w.directory, "https://"), "/dir"),
		"certificate":   w.file("server.crt"), "privateKey": w.file("server.key"),
		"httpPort": w.httpPort, "tlsPort": w.listener.Addr().(*net.TCPAddr).Port,
		"certificateValidityPeriod": int(life.Seconds()),
	}}))(w.t)
	musttest.Do(w.t, os.WriteFile(w.file("pebble.json"), content, 0o600))
	process := exec.CommandContext(w.t.Context(), "pebble", "-config", w.file("pebble.json"), "-dnsserver", dns.Addr())
	process.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=0")
	output := new(daemon.Output)
	process.Stdout, process.Stderr = output, output
	if err := process.Start(); err != nil {
		w.t.Fatalf("start pebble (run scripts/need-servers.sh): %v", err)
	}
	w.t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
	return output
}

// replica is an Authority, and its log.
type replica struct {
	*certificate.Authority

	log  daemon.Output
	stop func()
}

// run runs an Authority on the database of the world.
func (w *world) run(database certificate.Database, directory string) *replica {
	w.t.Helper()
	r := new(replica)
	r.Authority = musttest.Get(certificate.NewAuthority(certificate.Options{
		Host: host, Port: w.listener.Addr().(*net.TCPAddr).Port, Directory: cmp.Or(directory, w.directory),
		Database: database, Secrets: w.secrets, Log: slog.New(slog.NewTextHandler(&r.log, nil)),
		Roots: w.roots, HTTPPort: w.httpPort, FirstRetry: 100 * time.Millisecond, CheckEvery: 100 * time.Millisecond,
	}))(w.t)
	ctx, cancel := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = r.Run(ctx) })
	r.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	w.t.Cleanup(r.stop)
	return r
}

// answer has a replica answer the connections to the host.
func (w *world) answer(r *replica) {
	protocols := []string{"h2", "http/1.1", certificate.ChallengeProtocol}
	server := &http.Server{
		TLSConfig:         &tls.Config{GetCertificate: r.GetCertificate, MinVersion: tls.VersionTLS12, NextProtos: protocols},
		ReadHeaderTimeout: patience, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	go func() { _ = server.ServeTLS(w.listener, "", "") }() // ends with the listener
	w.t.Cleanup(func() { _ = server.Close() })
}

// served returns the certificate of a replica for a server name.
func (r *replica) served(t *testing.T, name string) *x509.Certificate {
	t.Helper()
	conn, _ := net.Pipe()
	pair := musttest.Get(r.GetCertificate(&tls.ClientHelloInfo{
		Conn: conn, ServerName: name, CipherSuites: []uint16{tls.TLS_AES_128_GCM_SHA256}, SupportedVersions: []uint16{tls.VersionTLS13},
	}))(t)
	return musttest.Get(x509.ParseCertificate(pair.Certificate[0]))(t)
}

// issued reports whether the authority issued what a replica serves.
func (r *replica) issued(t *testing.T) bool {
	return strings.HasPrefix(r.served(t, host).Issuer.CommonName, "Pebble")
}

// orders counts the certificates that the authority issued.
func orders(authority *daemon.Output) int {
	return strings.Count(authority.String(), "Issued certificate")
}

func (w *world) eventually(what string, condition func() bool, logs ...*daemon.Output) {
	w.t.Helper()
	defer func() {
		if w.t.Failed() {
			for _, log := range logs {
				w.t.Log(log)
			}
		}
	}()
	daemon.Eventually(w.t, patience, what, condition)
}

// TestReplicasShareACertificate has two replicas get one certificate, although the authority
// connects to one of them, and a third start from the database.
func TestReplicasShareACertificate(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		authority := w.startAuthority(time.Hour)
		s := db.Open(t, store.Options{})
		other := s
		if db.Engine == "postgres" {
			other = db.Open(t, store.Options{})
		}
		a := w.run(s, "")
		w.answer(a)
		if db.Engine == "sqlite" { // which only one daemon uses: there are no leases
			w.eventually("a certificate", func() bool { return a.issued(t) }, authority, &a.log)
		}
		b := w.run(other, "")
		w.eventually("certificates", func() bool { return a.issued(t) && b.issued(t) }, authority, &a.log, &b.log)
		serial := a.served(t, host).SerialNumber
		for _, name := range []string{host, "", "other.test"} {
			if got := b.served(t, name).SerialNumber; got.Cmp(serial) != 0 {
				t.Errorf("the other replica for %q: got certificate %v, want %v", name, got, serial)
			}
		}
		b.stop()
		restarted := w.run(other, "")
		w.eventually("the stored certificate", func() bool { return restarted.issued(t) }, &restarted.log)
		if n := orders(authority); n != 1 || restarted.served(t, host).SerialNumber.Cmp(serial) != 0 {
			t.Errorf("got %d certificates, want one", n)
		}
		leaf := musttest.Get(certificate.Stored(t.Context(), s, w.secrets, host))(t)
		if leaf.SerialNumber.Cmp(serial) != 0 {
			t.Errorf("stored: got certificate %v, want %v", leaf.SerialNumber, serial)
		}
		for _, name := range musttest.Get(s.CertificateFiles(t.Context()))(t) {
			if content := musttest.Get(s.CertificateFile(t.Context(), name))(t); bytes.Contains(content, []byte("BEGIN")) {
				t.Errorf("%s is stored in plain text", name)
			}
		}
		restarted.stop()
		musttest.Do(t, os.Remove(w.file("secret.key")))
		w.secrets = secret.File(w.file("other.key"))
		musttest.Get(w.secrets.Subkey("test"))(t)
		if _, err := certificate.Stored(t.Context(), s, w.secrets, host); err != fs.ErrNotExist { //nolint:errorlint // it is returned as it is
			t.Errorf("without secret.key: got %v, want %v", err, fs.ErrNotExist)
		}
		again := w.run(other, "")
		w.eventually("another certificate", func() bool { return again.issued(t) }, authority, &again.log)
		if !strings.Contains(again.log.String(), "cannot be decrypted") {
			t.Errorf("without secret.key: got the log %s", &again.log)
		}
	})
}

// TestCertificateIsRenewed gets certificates that are valid for a few seconds.
func TestCertificateIsRenewed(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	w := newWorld(t, storetest.SQLite(t))
	authority := w.startAuthority(6 * time.Second)
	a := w.run(w.db.Open(t, store.Options{}), "")
	w.answer(a)
	w.eventually("a certificate", func() bool { return a.issued(t) }, authority, &a.log)
	first := a.served(t, host).SerialNumber
	w.eventually("another certificate", func() bool { return a.served(t, host).SerialNumber.Cmp(first) != 0 }, authority, &a.log)
	if !strings.Contains(a.log.String(), "renewal=true") {
		t.Errorf("got the log %s", &a.log)
	}
}

// TestAuthorityIsAway starts without an authority. Clients are served meanwhile, and the log says
// what is wrong.
func TestAuthorityIsAway(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	w := newWorld(t, storetest.SQLite(t))
	a := w.run(w.db.Open(t, store.Options{}), "")
	w.answer(a)
	w.eventually("a line in the log", func() bool { return strings.Contains(a.log.String(), "connection refused") }, &a.log)
	if leaf := a.served(t, host); leaf.VerifyHostname(host) != nil || a.issued(t) {
		t.Errorf("got a certificate for %v by %v, want a self-signed one", leaf.DNSNames, leaf.Issuer)
	}
	authority := w.startAuthority(time.Hour)
	w.eventually("a certificate", func() bool { return a.issued(t) }, authority, &a.log)
}

// TestRateOfTheAuthority has an authority that answers that the rate of orders is too high.
func TestRateOfTheAuthority(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	var authority *httptest.Server
	authority = httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Replay-Nonce", "x")
		if r.URL.Path == "/dir" {
			rw.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(rw, `{"newNonce": "%[1]s/nonce", "newAccount": "%[1]s/account", "newOrder": "%[1]s/order"}`, authority.URL)
			return
		}
		rw.Header().Set("Content-Type", "application/problem+json")
		rw.Header().Set("Retry-After", "3600")
		if r.Method == http.MethodPost {
			rw.WriteHeader(http.StatusTooManyRequests)
			_, _ = rw.Write([]byte(`{"type": "urn:ietf:params:acme:error:rateLimited", "detail": "too many certificates already issued"}`))
		}
	}))
	t.Cleanup(authority.Close)
	w.roots.AddCert(authority.Certificate())
	a := w.run(w.db.Open(t, store.Options{}), authority.URL+"/dir")
	w.eventually("a line in the log", func() bool { return strings.Contains(a.log.String(), "too many certificates already issued") }, &a.log)
	if a.issued(t) {
		t.Error("got a certificate")
	}
	a.stop()
}
