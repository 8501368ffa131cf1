package e2e_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// TestEventsFollowedOverTLS checks that an export that follows sends every event to a syslog
// server over TLS, across a restart of the server and a kill of the export.
func TestEventsFollowedOverTLS(t *testing.T) {
	t.Parallel()
	onSQLite(t, "", func(t *testing.T, in *installation) {
		in.serve()
		server := startSyslog(t)
		cursor := filepath.Join(t.TempDir(), "cursor")
		follow := func() *exec.Cmd {
			binary := in.binary([]string{"SSL_CERT_FILE=" + server.roots})
			export := exec.CommandContext(t.Context(), binary.Program, "export", "--team", "default", "--events", "--follow", "--cursor-file", cursor, "--syslog", "tls://"+server.address)
			export.Env, export.Dir = binary.Settings, t.TempDir()
			musttest.Do(t, export.Start())
			return export
		}
		happen := func() { in.do("alert", "test", "--team", "default") }

		// A server that cannot be verified gets nothing.
		happen()
		binary := in.binary([]string{"SSL_CERT_DIR=" + t.TempDir(), "SSL_CERT_FILE=" + os.DevNull})
		if r := binary.Run(t, "", "export", "--team", "default", "--events", "--syslog", "tls://"+server.address); r.Status == 0 || !strings.Contains(r.Stderr, "certificate") {
			t.Errorf("an unknown certificate: got status %d and %q", r.Status, r.Stderr)
		}

		export := follow()
		server.await(t, 1)
		server.disconnect() // as when it restarts
		happen()
		server.await(t, 2)
		happen()
		server.await(t, 3)
		daemon.Eventually(t, daemon.CommandLimit, "the cursor follows", func() bool {
			content, err := os.ReadFile(cursor)
			return err == nil && strings.TrimSpace(string(content)) == "3"
		})
		musttest.Do(t, export.Process.Kill())
		_ = export.Wait() // it was killed
		happen()
		export = follow()
		server.await(t, 4)
		musttest.Do(t, export.Process.Signal(os.Interrupt))
		if err := export.Wait(); err != nil {
			t.Errorf("an interrupted export: %v", err)
		}
	})
}

// syslogServer receives messages by RFC 5425.
type syslogServer struct {
	address, roots string

	mu       sync.Mutex
	conns    []net.Conn
	received []int64 // numbers of events, in order of arrival
}

func startSyslog(t *testing.T) *syslogServer {
	t.Helper()
	web := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(web.Close)
	s := &syslogServer{roots: filepath.Join(t.TempDir(), "roots.pem")}
	musttest.Do(t, os.WriteFile(s.roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}), 0o600))
	listener := musttest.Get(tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: web.TLS.Certificates, MinVersion: tls.VersionTLS12}))(t)
	s.address = listener.Addr().String()
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, conn)
			s.mu.Unlock()
			serving.Go(func() { s.read(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close() // nothing is sent any more
		s.disconnect()
		serving.Wait()
	})
	return s
}

// read reads messages in octet counting until the client leaves.
func (s *syslogServer) read(conn net.Conn) {
	defer func() { _ = conn.Close() }() // it was read
	in := bufio.NewReader(conn)
	for {
		length, err := in.ReadString(' ')
		n, _ := strconv.Atoi(strings.TrimSpace(length))
		message := make([]byte, n)
		if _, short := io.ReadFull(in, message); err != nil || short != nil {
			return
		}
		_, content, _ := bytes.Cut(message, []byte(" event - "))
		var event struct{ Seq int64 }
		_ = json.Unmarshal(content, &event) // what is no event has the number 0
		s.mu.Lock()
		s.received = append(s.received, event.Seq)
		s.mu.Unlock()
	}
}

// disconnect closes all connections.
func (s *syslogServer) disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.conns {
		_ = conn.Close() // it may be closed
	}
}

// await waits until the events from 1 to last have arrived, each at least once.
func (s *syslogServer) await(t *testing.T, last int64) {
	t.Helper()
	var got []int64
	daemon.Eventually(t, daemon.CommandLimit, fmt.Sprintf("event %d arrives", last), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		got = slices.Compact(slices.Clone(s.received))
		return len(got) > 0 && got[len(got)-1] == last
	})
	for i, seq := range got {
		if seq != int64(i)+1 {
			t.Fatalf("got the events %d, want those from 1 to %d", got, last)
		}
	}
}
