package app_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// listen answers every connection with serve, until the test ends, and returns the
// address.
func listen(t *testing.T, serve func(conn net.Conn)) string {
	t.Helper()
	listener := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	var serving sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close() // ends the loop below
		serving.Wait()
	})
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer func() { _ = conn.Close() }() // all is said
				serve(conn)
			})
		}
	})
	return listener.Addr().String()
}

// refuseLogin is a mail server that rejects every login.
func refuseLogin(conn net.Conn) {
	_, _ = fmt.Fprint(conn, "* OK [CAPABILITY IMAP4rev1] ready\r\n")
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		tag, _, _ := strings.Cut(lines.Text(), " ")
		_, _ = fmt.Fprint(conn, tag+" NO not you\r\n")
	}
}

// TestMailboxForm has the form connect to what is no mail server: the answer is the
// same whatever it is, and takes as long. A mail server that refuses the login is told
// apart.
func TestMailboxForm(t *testing.T) {
	t.Parallel()
	d := start(t, storetest.SQLite(t), "DMARCD_OUTBOUND_ALLOW=127.0.0.0/8")
	origin := strings.TrimSuffix(d.url, "/api")
	client := browser(t)
	visit(t, client, origin+invitationForm.FindString(d.out), url.Values{"email": {"ann@example.com"}, "password": {"a few words in a row"}})
	const hasty = 9 * time.Second // ten are waited
	for _, row := range []struct {
		name, server, says string
		least              time.Duration
	}{
		{"no listener", "127.0.0.1:1", "The server cannot be reached, or does not support IMAP", hasty},
		{"something else", listen(t, func(conn net.Conn) { _, _ = fmt.Fprint(conn, "SSH-2.0-other\r\n") }), "The server cannot be reached, or does not support IMAP", hasty},
		{"a private address", "10.0.0.1", "An operator can allow its network with DMARCD_OUTBOUND_ALLOW", 0},
		{"another private address", "[64:ff9b::a00:1]:143", "An operator can allow its network with DMARCD_OUTBOUND_ALLOW", 0},
		{"a mail server", listen(t, refuseLogin), "The server rejected the login.", 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if row.least > 0 && testing.Short() {
				return // waits for ten seconds
			}
			began := time.Now()
			response, page := visit(t, client, origin+"/app/settings/mailboxes", url.Values{
				"server": {row.server}, "security": {"none"}, "username": {"ann"}, "password": {"open sesame"}, "folder": {"INBOX"}, "after": {"keep"},
			})
			took := time.Since(began)
			if response.status != http.StatusUnprocessableEntity || !strings.Contains(page, row.says) || took < row.least {
				t.Errorf("got %d after %s and %s, want 422 and %q after %s", response.status, took, page, row.says, row.least)
			}
			for _, reason := range []string{"10.0.0.1:143:", "connection refused", "SSH-2.0", "EOF", "open sesame"} {
				if strings.Contains(page, reason) {
					t.Errorf("got %q in the page, want it in the log alone", reason)
				}
			}
		})
	}
}
