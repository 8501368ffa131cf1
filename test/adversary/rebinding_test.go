package adversary_test

import (
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestMailboxMovesInside has a mailbox whose name first leads to an address that is allowed, and
// that is read there. Then the same name leads to this host, where nothing must connect.
func TestMailboxMovesInside(t *testing.T) {
	onSQLite(t, func(t *testing.T, a *arena) {
		var outside, inside atomic.Int64
		answer := func(hits *atomic.Int64) func(net.Conn) {
			return func(conn net.Conn) {
				hits.Add(1)
				_, _ = fmt.Fprint(conn, "* BYE try again\r\n") // the reader connects again, soon
			}
		}
		port := listen(t, answer(&inside))
		other := musttest.Get(net.Listen("tcp", fmt.Sprintf("127.0.0.2:%d", port)))(t)
		defer func() { _ = other.Close() }() // it is only a peer
		go func() {
			for {
				conn, err := other.Accept()
				if err != nil {
					return
				}
				answer(&outside)(conn)
				_ = conn.Close() // it is only a peer
			}
		}()
		a.dns.setZone(t, "box.evil.test. 0 A 127.0.0.2\n")
		if r := read(t, a.in, "mallory", "box.evil.test", port); r.Status != 0 {
			t.Fatalf("mailbox add: got status %d want 0: %s", r.Status, r.Stderr)
		}
		eventually(t, mailboxLimit, "the mailbox is read at the first address", func() bool { return outside.Load() > 0 })
		a.dns.setZone(t, "box.evil.test. 0 A 127.0.0.1\n")
		eventually(t, mailboxLimit, "the second address is refused", func() bool {
			return inside.Load() > 0 || strings.Contains(mailboxes(t, a.in, "mallory")[port], "DMARCD_OUTBOUND_ALLOW")
		})
		if got := inside.Load(); got != 0 {
			t.Errorf("got %d connections to this host want none", got)
		}
		a.d.Stop()
	}, "DMARCD_OUTBOUND_ALLOW=127.0.0.2/32")
}
