package adversary_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestUploadsOneByteShort opens uploads on every entrance that takes them and
// never sends the last byte.
func TestUploadsOneByteShort(t *testing.T) {
	const each = 30
	onSQLite(t, func(t *testing.T, a *arena) {
		content := about("mallory.test", "short", 1, 0).xml()
		paths := map[string]string{
			"/api/reports": "Authorization: Bearer " + a.mallory.token + "\r\n",
			"/tlsrpt/" + a.mailbox("mallory", "mallory.test"): "",
		}
		a.watch("uploads one byte short", func() {
			var waiting sync.WaitGroup
			for path, header := range paths {
				for range each {
					waiting.Go(func() {
						conn, err := net.Dial("tcp", a.d.HTTP)
						if err != nil {
							t.Error(err)
							return
						}
						defer func() { _ = conn.Close() }() // it is only a peer
						_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: dmarcd\r\n%sContent-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n%s",
							path, header, len(content)+1, content)
						_ = conn.SetReadDeadline(deadline(shortLimit)) // it fails with the read
						answer, err := io.ReadAll(conn)
						if err != nil && len(answer) == 0 {
							t.Errorf("%s: got %v want an answer, or the end of the connection, within %v", path, err, shortLimit)
						}
						if strings.HasPrefix(string(answer), fmt.Sprintf("HTTP/1.1 %d", http.StatusCreated)) {
							t.Errorf("%s: got %.100s want no success", path, answer)
						}
					})
				}
			}
			waiting.Wait()
		})
		a.d.Stop()
	})
}

// shortLimit is how long an upload may stay open that sends nothing more.
const shortLimit = patience

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

// TestHeavyUploads has one team read much at once, by every entrance that reads
// for it.
func TestHeavyUploads(t *testing.T) {
	const uploads = 8
	size := 32 * mega
	if soak {
		size = 240 * mega
	}
	onSQLite(t, func(t *testing.T, a *arena) {
		bomb := closings(t, size)
		box := a.mailbox("mallory", "mallory.test")
		address := a.address("mallory", "mallory.test")
		a.watch("end tags that close nothing", func() {
			var attacking sync.WaitGroup
			for i := range uploads {
				attacking.Go(func() {
					path := "/reports"
					switch i % 4 {
					case 1:
						path = "/tlsrpt/" + box
					case 2:
						if err := a.tryMail("127.1.0.1", "x@mallory.test", address, mailFrom("mallory.test", string(bomb))); smtpCode(err) == 0 {
							t.Errorf("a heavy mail: %v", err)
						}
						return
					}
					got, err := a.mallory.try(t.Context(), http.MethodPost, path, "application/octet-stream", bomb)
					if err != nil {
						t.Errorf("a heavy upload to %s: %v", path, err)
					}
					if got.status == http.StatusInternalServerError {
						t.Errorf("a heavy upload to %s: got %v", path, got)
					}
				})
			}
			attacking.Wait()
		})
		a.d.Stop()
	})
}
