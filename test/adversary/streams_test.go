package adversary_test

import (
	"bufio"
	"fmt"
	"net"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestManyStreams has a tenant hold all connections with streams of events, from several networks.
// The victim has rounds to finish meanwhile.
func TestManyStreams(t *testing.T) {
	// The daemon has 2,048 connections, and 256 for one network.
	const networks, each, rounds = 9, 256, 3
	onSQLite(t, func(t *testing.T, a *arena) {
		for i := range networks * each {
			dialer := net.Dialer{LocalAddr: localAddress(fmt.Sprintf("127.1.%d.1", i%networks))}
			conn := musttest.Get(dialer.DialContext(t.Context(), "tcp", a.d.HTTP))(t)
			t.Cleanup(func() { _ = conn.Close() }) // it is only a peer
			_, _ = fmt.Fprintf(conn, "GET /api/events HTTP/1.1\r\nHost: dmarcd\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n", a.mallory.token)
			_, _ = bufio.NewReader(conn).Peek(1) // it streams, or is closed
		}
		a.watch("many streams", func() {
			began := a.rounds.Load()
			eventually(t, patience, "the victim works", func() bool { return a.rounds.Load() >= began+rounds })
		})
		a.d.Stop()
	})
}
