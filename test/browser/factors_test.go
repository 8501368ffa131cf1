package browser_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/emersion/go-smtp"
	"github.com/pquerna/otp/totp"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// letterbox is a mail relay that keeps what it accepts.
type letterbox struct {
	mu      sync.Mutex
	letters [][]byte
}

// NewSession implements smtp.Backend.
func (l *letterbox) NewSession(*smtp.Conn) (smtp.Session, error) { return l, nil }

func (l *letterbox) Mail(string, *smtp.MailOptions) error { return nil }
func (l *letterbox) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (l *letterbox) Reset()                               {}
func (l *letterbox) Logout() error                        { return nil }

func (l *letterbox) Data(r io.Reader) error {
	letter, err := io.ReadAll(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.letters = append(l.letters, bytes.ReplaceAll(letter, []byte("=\r\n"), nil)) // quoted-printable
	return err
}

// startLetterbox starts a relay until the test ends, and returns the settings that use it.
func startLetterbox(t *testing.T) (l *letterbox, settings []string) {
	t.Helper()
	l = &letterbox{}
	server := smtp.NewServer(l)
	listener := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // until it is closed
	}()
	t.Cleanup(func() {
		_ = server.Close() // nothing else uses it
		<-done
	})
	return l, []string{"DMARCD_MAIL_RELAY=smtp://" + listener.Addr().String() + "?tls=off", "DMARCD_MAIL_FROM=dmarcd <dmarc@sender.example>"}
}

// await waits for a letter with a link below a path, and returns the path of the link.
func (l *letterbox) await(t *testing.T, below string) (link string) {
	t.Helper()
	pattern := regexp.MustCompile(regexp.QuoteMeta(below) + `\w+`)
	daemon.Eventually(t, guideLimit, "a letter with a link to "+below, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		at := slices.IndexFunc(l.letters, pattern.Match)
		if at >= 0 {
			link = string(pattern.Find(l.letters[at]))
		}
		return at >= 0
	})
	return link
}

// TestProofsOfAUser confirms another address, sets up an authenticator app, and signs in with it after
// the password was forgotten. Every page on the way is rendered in every way.
func TestProofsOfAUser(t *testing.T) {
	t.Parallel()
	letters, settings := startLetterbox(t)
	s := serve(t, "", settings...)
	b := s.open(t)
	b.acceptInvitation(s.link, "ada@example.com")
	b.visit("/app/account", http.StatusOK)
	b.shows("ada@example.com is not confirmed")
	b.inspect("account-unconfirmed")
	b.write("email", "ada.harbour@example.org")
	b.press("Send a link")
	b.shows("A message with a link is on its way")
	b.visit(letters.await(t, "/app/account/address/"), http.StatusOK)
	b.shows("Use ada.harbour@example.org for your account instead of ada@example.com?")
	b.inspect("account-address")
	b.press("Confirm the address")
	b.shows("ada.harbour@example.org is confirmed")

	b.press("Set up an authenticator app")
	b.inspect("authenticator")
	secret := b.text("main code")
	b.write("code", "000000")
	if got := b.load(chromedp.Click(`//button[normalize-space()="Turn on"]`)); got != http.StatusUnprocessableEntity {
		t.Errorf("a wrong code: got status %d want 422", got)
	}
	b.shows("The code is incorrect")
	b.inspect("authenticator-wrong")
	b.write("code", musttest.Get(totp.GenerateCode(secret, time.Now()))(t))
	b.press("Turn on")
	b.shows("Store these codes")
	codes := regexp.MustCompile(`[A-Z2-7]{4}(-[A-Z2-7]{4}){3}`).FindAllString(b.text("main"), -1)
	b.inspect("recovery-codes")
	b.follow("I stored them")
	b.shows("Signing in needs a code of your authenticator app")
	b.inspect("account-factor")

	b.signOut()
	b.follow("Forgot your password?")
	b.inspect("reset")
	b.write("email", "ada.harbour@example.org")
	b.press("Send the link")
	b.shows("a message with a link is on its way")
	b.inspect("reset-sent")
	b.visit(letters.await(t, "/app/reset/"), http.StatusOK)
	b.inspect("reset-password")
	b.write("password", "other words in another row")
	b.press("Set the password")
	b.write("email", "ada.harbour@example.org")
	b.write("password", "other words in another row")
	b.press("Sign in")
	b.shows("Confirm that it is you")
	b.inspect("sign-in-code")
	b.write("code", codes[0])
	b.press("Sign in")
	if got := b.path(); got != "/app/" {
		t.Errorf("after the code: got %s want the overview", got)
	}
}
