package adversary_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
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
