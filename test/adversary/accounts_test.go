package adversary_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// inbox is a mail server that takes all mail.
type inbox struct {
	mu   sync.Mutex
	sent []letter
}

// letter is a mail to a user.
type letter struct{ to, content string }

// startInbox returns the settings to send mail to it.
func startInbox(t testing.TB) (*inbox, []string) {
	t.Helper()
	in := &inbox{}
	port := listen(t, in.serve)
	return in, []string{fmt.Sprintf("DMARCD_MAIL_RELAY=smtp://127.0.0.1:%d?tls=off", port), "DMARCD_MAIL_FROM=noreply@dmarcd.test"}
}

func (in *inbox) serve(conn net.Conn) {
	text := textproto.NewConn(conn)
	reply := func(line string) { _ = text.PrintfLine("%s", line) } // the next read fails
	reply("220 inbox.test")
	var to string
	for {
		line, err := text.ReadLine()
		if err != nil {
			return
		}
		switch verb, rest, _ := strings.Cut(line, ":"); verb {
		case "RCPT TO":
			to = strings.Trim(rest, "<> ")
			reply("250 ok")
		case "DATA":
			reply("354 go on")
			lines, err := text.ReadDotLines()
			if err != nil {
				return
			}
			content := strings.NewReplacer("=\n", "", "=3D", "=").Replace(strings.Join(lines, "\n")) // quoted-printable
			in.mu.Lock()
			in.sent = append(in.sent, letter{to, content})
			in.mu.Unlock()
			reply("250 stored")
		case "QUIT":
			reply("221 bye")
			return
		default:
			reply("250 inbox.test")
		}
	}
}

// link waits for the n-th mail to an address with a link whose path begins so, and returns the link.
func (in *inbox) link(t testing.TB, to, path string, n int) (link string) {
	t.Helper()
	links := regexp.MustCompile(`https?://[^\s"<>/]+` + path + `[\w-]+`)
	eventually(t, patience, fmt.Sprintf("%s gets %d mails with a link to %s", to, n, path), func() bool {
		in.mu.Lock()
		defer in.mu.Unlock()
		found := 0
		for _, l := range in.sent {
			if match := links.FindString(l.content); match != "" && l.to == to {
				found, link = found+1, match
			}
		}
		return found >= n
	})
	return link
}

// TestMailedLinks attacks the links that users get by mail: with another host in the request, at the same moment, as
// another user, for another purpose, and a second time. None of them is in the log.
func TestMailedLinks(t *testing.T) {
	t.Parallel()
	const origin, next = "http://dmarcd.test", "next@victim.test"
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		mail, settings := startInbox(t)
		a := enter(t, db, append(settings, "DMARCD_BASE_URL="+origin+"/api")...)
		v, old := a.victim, a.victim.email
		v.signIn()
		a.mallory.signIn()
		visitor := *v
		visitor.client = newClient(t, "127.1.0.1")
		path := func(link string) string {
			t.Helper()
			at := musttest.Get(url.Parse(link))(t)
			if at.Scheme+"://"+at.Host != origin {
				t.Errorf("got the link %s, want one to %s", link, origin)
			}
			return at.Path
		}
		reset := func(email string) answer {
			t.Helper()
			form := url.Values{"email": {email}}.Encode()
			r := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, v.origin+"/app/reset", strings.NewReader(form)))(t)
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Sec-Fetch-Site", "same-origin")
			r.Header.Set("X-Forwarded-Host", "evil.test")
			r.Host = "evil.test"
			response, err := visitor.client.Do(r)
			musttest.Do(t, err)
			defer func() { _ = response.Body.Close() }() // it is read to the end
			var body bytes.Buffer
			_ = musttest.Get(body.ReadFrom(response.Body))(t)
			return answer{status: response.StatusCode, header: response.Header, body: bytes.ReplaceAll(body.Bytes(), []byte(email), nil)}
		}
		user, other := reset(old), reset("unknown@victim.test")
		if user.status != http.StatusOK || user.status != other.status || !bytes.Equal(user.body, other.body) {
			t.Errorf("asking for a link: got %v for a user and %v for others, want the same", user, other)
		}
		link := path(mail.link(t, old, "/app/reset/", 1))
		if got := visitor.send(http.MethodGet, link, "", nil); got.status != http.StatusOK || got.header.Get("Referrer-Policy") != "same-origin" || got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("the link: got %v with %v, want a page for this origin alone", got, got.header)
		}
		// rejects wants that a link can neither be seen nor used.
		rejects := func(what string, by *tenant, link string) {
			t.Helper()
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				form := url.Values{"password": {"wooden clocks run late"}}.Encode()
				if got := by.send(method, link, "application/x-www-form-urlencoded", []byte(form)); got.status != http.StatusNotFound {
					t.Errorf("%s: %s: got %v, want 404", what, method, got)
				}
			}
		}
		// once sends a form several times at once, of which one succeeds, and returns which.
		once := func(what string, by *tenant, link string, form func(n int) url.Values) (winner int) {
			t.Helper()
			answers := make([]answer, 6)
			var all sync.WaitGroup
			for n := range answers {
				all.Go(func() {
					var err error
					answers[n], err = by.try(t.Context(), http.MethodPost, link, "application/x-www-form-urlencoded", []byte(form(n).Encode()))
					if err != nil {
						t.Errorf("%s: %v", what, err)
					}
				})
			}
			all.Wait()
			used := 0
			for n, got := range answers {
				switch {
				case got.status == http.StatusSeeOther && !strings.Contains(got.header.Get("Location"), "sign-in?next"):
					winner, used = n, used+1
				case got.status != http.StatusNotFound && got.status != http.StatusConflict:
					t.Errorf("%s: got %v, want it done or 404", what, got)
				}
			}
			if used != 1 {
				t.Errorf("%s: got %d times, want once", what, used)
			}
			return winner
		}
		words := func(n int) string { return fmt.Sprintf("%d wooden clocks run late", n) }
		winner := once("the same link at once", &visitor, link, func(n int) url.Values { return url.Values{"password": {words(n)}} })
		rejects("a used link", &visitor, link)
		if got := v.send(http.MethodGet, "/app/account", "", nil); got.status != http.StatusSeeOther {
			t.Errorf("a session from before: got %v, want it ended", got)
		}
		signIn := func(email, password string, want int) {
			t.Helper()
			if got := v.post("/app/sign-in", url.Values{"email": {email}, "password": {password}}); got.status != want {
				t.Errorf("sign in as %s: got %v, want %d", email, got, want)
			}
		}
		signIn(old, words((winner+1)%6), http.StatusUnauthorized)
		signIn(old, words(winner), http.StatusSeeOther)

		reset(old)
		resetLink := path(mail.link(t, old, "/app/reset/", 2))
		if got := v.post("/app/account/address", url.Values{"email": {next}}); got.status != http.StatusSeeOther {
			t.Fatalf("another address: got %v, want 303", got)
		}
		link = path(mail.link(t, next, "/app/account/address/", 1))
		secret := link[strings.LastIndex(link, "/")+1:]
		rejects("the link of another user", a.mallory, link)
		rejects("the link to set a password", &visitor, "/app/reset/"+secret)
		rejects("the link as an invitation", &visitor, "/app/invitation/"+secret)
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if got := visitor.send(method, link, "application/x-www-form-urlencoded", nil); got.status == http.StatusOK || bytes.Contains(got.body, []byte(next)) {
				t.Errorf("%s without a session: got %v, want nothing of the user", method, got)
			}
		}
		once("the same address at once", v, link, func(int) url.Values { return nil })
		rejects("a used address", v, link)
		rejects("a link of the address before", &visitor, resetLink)
		v.email = next
		signIn(old, words(winner), http.StatusUnauthorized)
		signIn(next, words(winner), http.StatusSeeOther)

		for _, secret := range []string{secret, resetLink[strings.LastIndex(resetLink, "/")+1:]} {
			if strings.Contains(a.d.Log(), secret) {
				t.Error("the log has the secret of a link")
			}
		}
		if got := a.in.Run(t, "", "doctor"); !strings.Contains(got.Stdout, "No entry was changed or removed.") {
			t.Errorf("doctor: got %s, want an intact audit log", got.Stdout)
		}
		a.survives("mailed links")
	})
}
