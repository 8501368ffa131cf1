package browser_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestTask11 adds a channel whose endpoint refuses messages: its failure is seen, with what
// to do, in four clicks. A test says when it is fixed.
func TestTask11(t *testing.T) {
	t.Parallel()
	inBothWays(t, empty, func(t *testing.T, b *task) {
		var fixed atomic.Bool
		endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if !fixed.Load() {
				w.WriteHeader(http.StatusNotFound)
			}
		}))
		t.Cleanup(endpoint.Close)
		b.settings("/app/settings/notifications")
		b.wants("Alerts are not sent to anyone")
		b.click(`main a[href="/app/settings/notifications/new/slack"]`)
		b.enter("url", endpoint.URL+"/services/first")
		b.click("main form.form button")
		b.took(4)
		b.wants("Test: not sent")
		b.wants("status 404: there is no such URL. Copy it once more")
		if !b.has("#state.danger") {
			t.Error("the failed test is not red")
		}
		b.inspect("a channel that fails")
		fixed.Store(true)
		b.click(`main form[action$="/test"] button`)
		b.wants("Test: delivered")
		if !b.has("#state.good") || strings.Contains(b.text("#state"), "404") {
			t.Errorf("got %q, want a test that was delivered", b.text("#state"))
		}
		b.visit("/app/settings/notifications", http.StatusOK)
		b.wants("No delivery fails.")
		b.inspect("notifications")
	})
}

// TestTask14 adds a mailbox of a real server with a wrong password: what failed is understood
// in three clicks, and only the password has to be typed again.
func TestTask14(t *testing.T) {
	t.Parallel()
	const right = "correct horse"
	inBothWays(t, empty, func(t *testing.T, b *task) {
		account := imapmemserver.NewUser("reports", right)
		musttest.Do(t, account.Create("INBOX", nil))
		memory := imapmemserver.New()
		memory.AddUser(account)
		server := imapserver.New(&imapserver.Options{InsecureAuth: true, NewSession: func(*imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
			return memory.NewSession(), nil, nil
		}})
		listener := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		served := make(chan error)
		go func() { served <- server.Serve(listener) }()
		t.Cleanup(func() {
			_ = listener.Close() // ends Serve
			<-served
		})
		b.settings("/app/settings/mailboxes")
		b.enter("server", listener.Addr().String())
		b.enter("security", "none")
		b.enter("username", "reports")
		b.enter("password", "guess")
		b.clickFor("main form.form button.primary", http.StatusUnprocessableEntity)
		b.took(3)
		if got := b.text("#error-password"); !strings.Contains(got, "The sign-in failed: the server rejected the user name or the password.") {
			t.Errorf("got %q at the password", got)
		}
		if b.value("server") != listener.Addr().String() || b.value("security") != "none" || b.value("username") != "reports" || b.value("password") != "" {
			t.Errorf("got another input than what was typed, without the password: %s", b.summary())
		}
		b.inspect("a mailbox with a wrong password")
		if got := b.site.run("mailbox", "list", "--team", "default", "--json"); strings.TrimSpace(got) != "[]" {
			t.Errorf("got the mailboxes %s, want none", got)
		}
		b.enter("password", right)
		b.click("main form.form button.primary")
		b.wants("The mailbox was added: the sign-in works, and the folder can be opened.")
		b.visit("/app/settings/mailboxes?method=oauth", http.StatusOK)
		b.wants("Token URL")
		b.inspect("a mailbox with OAuth")
	})
}
