package app

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// held is a connection that a test holds.
type held struct {
	net.Conn
	answers *bufio.Reader
}

// connectFrom connects from an address of the loopback network.
func connectFrom(t *testing.T, address string, to net.Addr) *held {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	conn := musttest.Get(dialer.DialContext(t.Context(), "tcp", to.String()))(t)
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return &held{conn, bufio.NewReader(conn)}
}

// ask sends a request, and reports whether it was answered.
func (c *held) ask() bool {
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return false
	}
	answer, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		return false
	}
	defer func() { _ = answer.Body.Close() }() // the connection stays open
	_, _ = io.Copy(io.Discard, answer.Body)
	return true
}

// serveBounded serves with a bound on connections.
func serveBounded(t *testing.T, bound *connections) net.Addr {
	t.Helper()
	listener := musttest.Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	server := &httptest.Server{Listener: bound.listen(listener), Config: &http.Server{
		Handler:           http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		ConnState:         bound.state,
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}}
	server.Start()
	t.Cleanup(server.Close)
	return listener.Addr()
}

func TestConnectionsOfOneNetworkAreBounded(t *testing.T) {
	t.Parallel()
	proxy := netip.MustParsePrefix("127.0.0.9/32")
	address := serveBounded(t, newConnections(100, 2, []netip.Prefix{proxy}))
	first, second := connectFrom(t, "127.0.0.2", address), connectFrom(t, "127.0.0.2", address)
	if !first.ask() || !second.ask() {
		t.Fatal("two connections of one address: got no answer")
	}
	if connectFrom(t, "127.0.0.2", address).ask() {
		t.Error("a third connection of the address: got an answer, want none")
	}
	if !connectFrom(t, "127.0.0.3", address).ask() {
		t.Error("a connection of another address: got no answer")
	}
	for range 4 {
		if !connectFrom(t, "127.0.0.9", address).ask() {
			t.Error("a connection of a trusted proxy: got no answer")
		}
	}
	_ = first.Close()
	if !answersSoon(t, "127.0.0.2", address) {
		t.Error("after one was closed: got no answer")
	}
}

// answersSoon reports whether a new connection is served, now or once the server has noticed
// that others ended.
func answersSoon(t *testing.T, from string, address net.Addr) bool {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		c := connectFrom(t, from, address)
		if c.ask() {
			return true
		}
		_ = c.Close()
	}
	return false
}

func TestIdleConnectionsGiveWay(t *testing.T) {
	t.Parallel()
	address := serveBounded(t, newConnections(2, 2, nil))
	silent, idle := connectFrom(t, "127.0.0.2", address), connectFrom(t, "127.0.0.3", address)
	if !idle.ask() {
		t.Fatal("got no answer")
	}
	for _, from := range []string{"127.0.0.4", "127.0.0.5", "127.0.0.6"} {
		if !answersSoon(t, from, address) {
			t.Error("a new connection: got no answer, want one of those that wait to give way")
		}
	}
	if silent.ask() {
		t.Error("the connection that waited longest: got an answer, want it closed")
	}
}

// TestNetworkWithMostConnectionsGivesWay has two networks hold all connections with requests that
// do not end. Others are served.
func TestNetworkWithMostConnectionsGivesWay(t *testing.T) {
	t.Parallel()
	bound := newConnections(8, 4, nil)
	listener := musttest.Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	begun := make(chan struct{}, 8)
	server := &httptest.Server{Listener: bound.listen(listener), Config: &http.Server{
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/stream" {
				begun <- struct{}{}
				<-r.Context().Done()
			}
		}),
		ConnState: bound.state, ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}}
	server.Start()
	t.Cleanup(server.Close)
	for i := range 8 {
		c := connectFrom(t, []string{"127.0.0.2", "127.0.0.3"}[i%2], listener.Addr())
		musttest.Get(io.WriteString(c, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"))(t)
		<-begun
	}
	if connectFrom(t, "127.0.0.2", listener.Addr()).ask() {
		t.Error("one more of a network that has most: got an answer, want none")
	}
	for _, from := range []string{"127.0.0.4", "127.0.0.5"} {
		c := connectFrom(t, from, listener.Addr())
		musttest.Get(io.WriteString(c, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"))(t)
		select {
		case <-begun:
		case <-time.After(time.Minute):
			t.Fatalf("%s: the request is not served", from)
		}
	}
	bound.mu.Lock()
	defer bound.mu.Unlock()
	if len(bound.open) != 8 {
		t.Errorf("got %d connections, want 8", len(bound.open))
	}
}
