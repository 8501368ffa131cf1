package browser_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// ownerTask is a task of an owner who is signed in, done by the pointer or by the keyboard alone. It
// counts the clicks, or the keys that stand for them.
type ownerTask struct {
	*tab
	keyboard bool
	clicks   int
}

// inBothWays does a task with the pointer, and with the keyboard alone.
func inBothWays(t *testing.T, do func(t *testing.T, s *site, d *ownerTask)) {
	t.Helper()
	for name, keyboard := range map[string]bool{"pointer": false, "keyboard": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, "")
			b := s.open(t)
			b.acceptInvitation(s.link, "owner@example.com")
			b.visit("/app/", http.StatusOK)
			do(t, s, &ownerTask{tab: b, keyboard: keyboard})
		})
	}
}

// focus moves the focus to an element by the Tab key.
func (d *ownerTask) focus(selector string) {
	d.t.Helper()
	const most = 150
	for range most {
		if read(d.tab, evaluate[bool](`document.activeElement.matches(`+quote(selector)+`)`)) {
			return
		}
		d.do(chromedp.KeyEvent(kb.Tab))
	}
	d.t.Fatalf("%s: the Tab key does not reach %s", d.address(), selector)
}

// goes clicks what leads to a page with a status.
func (d *ownerTask) goes(selector string, want int) {
	d.t.Helper()
	d.clicks++
	step := chromedp.Click(chromedp.CSS(selector))
	if d.keyboard {
		d.focus(selector)
		step = chromedp.KeyEvent(kb.Enter)
	}
	if got := d.load(step); got != want {
		d.t.Fatalf("after %s: got status %d, want %d; the page says: %s", selector, got, want, d.summary())
	}
}

// opens goes to a page of the team settings, from any page.
func (d *ownerTask) opens(path string) {
	d.t.Helper()
	if d.has(`nav.main a[href^="/app/settings/"]`) {
		d.goes(`nav.main a[href^="/app/settings/"]`, http.StatusOK)
		d.goes(`nav.tabs a[href="`+path+`"]`, http.StatusOK)
		return
	}
	d.clicks++
	if d.keyboard {
		d.focus("details.menu > summary")
		d.do(chromedp.KeyEvent(kb.Enter))
	} else {
		d.do(chromedp.Click(chromedp.CSS("details.menu > summary")))
	}
	d.goes(`details.menu a[href="`+path+`"]`, http.StatusOK)
}

// enters writes a text into an empty field, or chooses the option of that name.
func (d *ownerTask) enters(name, text string) {
	d.t.Helper()
	selector := `main [name="` + name + `"]`
	switch {
	case d.keyboard:
		d.focus(selector)
		d.do(chromedp.KeyEvent(text))
	case d.has(`main select[name="` + name + `"]`):
		d.choose(name, text)
	default:
		d.write(name, text)
	}
}

// value returns what is in a field.
func (d *ownerTask) value(name string) string {
	d.t.Helper()
	return read(d.tab, evaluate[string](`document.querySelector('main [name="`+name+`"]').value`))
}

// TestTask11Channel adds a channel whose endpoint refuses messages: its failure is seen, with what
// to do, in four clicks. A test says when it is fixed.
func TestTask11Channel(t *testing.T) {
	t.Parallel()
	inBothWays(t, func(t *testing.T, s *site, d *ownerTask) {
		var fixed atomic.Bool
		endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if !fixed.Load() {
				w.WriteHeader(http.StatusNotFound)
			}
		}))
		t.Cleanup(endpoint.Close)
		d.opens("/app/settings/notifications")
		d.shows("Alerts are not sent to anyone")
		d.goes(`main a[href="/app/settings/notifications/new/slack"]`, http.StatusOK)
		d.enters("url", endpoint.URL+"/services/first")
		d.goes("main form.form button", http.StatusOK)
		if d.clicks != 4 {
			t.Errorf("got %d clicks, want 4", d.clicks)
		}
		d.shows("Test: not sent")
		d.shows("status 404: there is no such URL. Copy it once more")
		if !d.has("#state.danger") {
			t.Error("the failed test is not red")
		}
		d.inspect("a channel that fails")
		fixed.Store(true)
		d.goes(`main form[action$="/test"] button`, http.StatusOK)
		d.shows("Test: delivered")
		if !d.has("#state.good") || strings.Contains(d.text("#state"), "404") {
			t.Errorf("got %q, want a test that was delivered", d.text("#state"))
		}
		d.visit("/app/settings/notifications", http.StatusOK)
		d.shows("No delivery fails.")
		d.inspect("notifications")
	})
}

// TestTask11BadInput enters what cannot be right: the field is named, what was typed stays, and no
// channel is added.
func TestTask11BadInput(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	b := s.open(t)
	b.acceptInvitation(s.link, "owner@example.com")
	d := &ownerTask{tab: b}
	d.visit("/app/settings/notifications/new/email", http.StatusOK)
	d.shows("This installation cannot send email yet.")
	d.visit("/app/settings/notifications/new/webhook", http.StatusOK)
	d.do(chromedp.Click(chromedp.CSS(`main input[value="record.removed"]`)))
	d.write("url", "example.com/hooks")
	d.write("domains", "a.example")
	d.goes("main form.form button", http.StatusUnprocessableEntity)
	if got := d.text("#error-url"); !strings.Contains(got, "https://") || d.value("url") != "example.com/hooks" || d.value("domains") != "a.example" || d.has(`main input[value="record.removed"]:checked`) || !d.has(`main input[value="record.changed"]:checked`) {
		t.Errorf("got %q at the field, and %q", got, d.summary())
	}
	d.inspect("a channel with bad input")
	if got := s.run("webhook", "list", "--team", "default", "--json"); strings.TrimSpace(got) != "[]" {
		t.Errorf("got the channels %s, want none", got)
	}
}

// TestTask14Mailbox adds a mailbox of a real server with a wrong password: what failed is understood
// in three clicks, and only the password has to be typed again.
func TestTask14Mailbox(t *testing.T) {
	t.Parallel()
	const right = "correct horse"
	inBothWays(t, func(t *testing.T, s *site, d *ownerTask) {
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
		d.opens("/app/settings/mailboxes")
		d.enters("server", listener.Addr().String())
		d.enters("security", "none")
		d.enters("username", "reports")
		d.enters("password", "guess")
		d.goes("main form.form button.primary", http.StatusUnprocessableEntity)
		if d.clicks != 3 {
			t.Errorf("got %d clicks, want 3", d.clicks)
		}
		if got := d.text("#error-password"); !strings.Contains(got, "The sign-in failed: the server rejected the user name or the password.") {
			t.Errorf("got %q at the password", got)
		}
		if d.value("server") != listener.Addr().String() || d.value("security") != "none" || d.value("username") != "reports" || d.value("password") != "" {
			t.Errorf("got another input than what was typed, without the password: %s", d.summary())
		}
		d.inspect("a mailbox with a wrong password")
		if got := s.run("mailbox", "list", "--team", "default", "--json"); strings.TrimSpace(got) != "[]" {
			t.Errorf("got the mailboxes %s, want none", got)
		}
		d.enters("password", right)
		d.goes("main form.form button.primary", http.StatusOK)
		d.shows("The mailbox was added: the sign-in works, and the folder can be opened.")
		d.visit("/app/settings/mailboxes?method=oauth", http.StatusOK)
		d.shows("Token URL")
		d.inspect("a mailbox with OAuth")
	})
}
