package browser_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/oidc"
)

// signIn signs in with the password.
func (v *visitor) signIn(email string) answer {
	v.t.Helper()
	return v.post("/app/sign-in", url.Values{"email": {email}, "password": {password}})
}

// wantIn wants the visitor to be signed in, or not.
func (v *visitor) wantIn(when string, want bool) {
	v.t.Helper()
	if got := v.get("/app/").status == http.StatusOK; got != want {
		v.t.Errorf("%s: got signed in %t want %t", when, got, want)
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	v := s.member(t, s.link, "ada@example.com")
	first := v.session()
	v.wantIn("after the invitation", true)

	// A new sign-in has a new secret, and the one before opens nothing.
	if got := v.signIn("ada@example.com"); got.status != http.StatusSeeOther {
		t.Fatalf("sign in: got status %d want 303", got.status)
	}
	second := v.session()
	if second == "" || second == first {
		t.Errorf("the secret after another sign-in: got the same want another")
	}
	thief := s.visitor(t)
	thief.hold(first)
	thief.wantIn("with the secret of before", false)

	// A secret chosen by an attacker is never taken over.
	const fixed = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	victim := s.visitor(t)
	victim.hold(fixed)
	victim.signIn("ada@example.com")
	if victim.session() == fixed {
		t.Error("the secret after signing in: got the one that was there want a new one")
	}
	thief.hold(fixed)
	thief.wantIn("with a secret that was planted", false)

	// Signing out ends the session at the server, and this one alone.
	v.post("/app/sign-out", nil)
	thief.hold(second)
	thief.wantIn("with the secret of a user who signed out", false)
	victim.wantIn("on another browser", true)

	// So does time.
	musttest.Get(s.db.SQL(t).ExecContext(t.Context(), "UPDATE sessions SET expires_at = 1"))(t)
	victim.wantIn("after the session expired", false)
	victim.signIn("ada@example.com")
	victim.wantIn("after signing in again", true)
	musttest.Get(s.db.SQL(t).ExecContext(t.Context(), "UPDATE sessions SET seen_at = 1"))(t)
	victim.wantIn("after the session was not used for long", false)

	// And so does the removal of the user.
	victim.signIn("ada@example.com")
	s.run("user", "remove", "ada@example.com")
	victim.wantIn("after the user was removed", false)
}

// hold gives the visitor a secret to be signed in with.
func (v *visitor) hold(secret string) {
	v.t.Helper()
	pages := musttest.Get(url.Parse(v.site.origin + "/app/"))(v.t)
	v.client.Jar.SetCookies(pages, []*http.Cookie{{Name: "dmarcd_session", Value: secret, Path: "/app/"}})
}

func TestCookies(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, baseURL string
		secure        bool
	}{
		{"over http", "http://dmarc.example/api", false},
		{"over https", "https://dmarc.example/api", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, "", "DMARCD_BASE_URL="+row.baseURL)
			v := s.visitor(t)
			for _, form := range []struct {
				path   string
				values url.Values
			}{
				{s.link, url.Values{"email": {"ada@example.com"}, "password": {password}}},
				{"/app/theme", url.Values{"theme": {"dark"}}},
				{"/app/sign-out", nil},
			} {
				r := v.request(http.MethodPost, form.path, form.values)
				cookie := v.send(r).header.Get("Set-Cookie")
				path := "Path=/app/"
				if row.secure && strings.HasPrefix(cookie, "__Host-") {
					path = "Path=/;" // as the prefix requires
				}
				for _, want := range []string{"HttpOnly", "SameSite=Lax", path} {
					if !strings.Contains(cookie, want) {
						t.Errorf("%s: got the cookie %q want %s in it", form.path, cookie, want)
					}
				}
				if got := strings.Contains(cookie, "Secure"); got != row.secure || strings.Contains(cookie, "Domain") {
					t.Errorf("%s: got the cookie %q want Secure %t and no Domain", form.path, cookie, row.secure)
				}
			}
		})
	}
}

func TestGuessingIsSlowedDown(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.member(t, s.link, "ada@example.com")
	v := s.visitor(t)
	guess := func(email string) answer {
		return v.post("/app/sign-in", url.Values{"email": {email}, "password": {"a guess, and a wrong one"}})
	}
	known, unknown := guess("ada@example.com"), guess("unknown@example.com")
	if strings.ReplaceAll(known.body, "ada@", "unknown@") != unknown.body || known.status != unknown.status {
		t.Error("a wrong password and an unknown address: got answers that differ want the same")
	}
	const many = 30
	for range many {
		if guess("ada@example.com").status == http.StatusTooManyRequests {
			return
		}
	}
	t.Errorf("%d guesses: got all of them tried want some refused with 429", many)
}

func TestSingleSignOn(t *testing.T) {
	t.Parallel()
	provider := oidc.Start(t, oidc.Options{Accounts: []oidc.Account{
		{Subject: "ada", Email: "ada@example.com", Verified: true, Name: "Ada Example"},
		{Subject: "mallory", Email: "mallory@example.net", Verified: true, Name: "Mallory"},
		{Subject: "liar", Email: "ada@example.com", Verified: false, Name: "A Liar"},
	}})
	s := serve(t, "",
		"DMARCD_OIDC_ISSUER="+provider.Issuer, "DMARCD_OIDC_CLIENT_ID="+provider.ClientID,
		"DMARCD_OIDC_CLIENT_SECRET="+provider.ClientSecret,
	)
	s.invite("ada@example.com", "default", "editor")
	for _, row := range []struct {
		account string
		status  int
		message string
	}{
		{"ada", http.StatusOK, "Team settings"},
		{"mallory", http.StatusForbidden, "You have not been invited"},
		{"liar", http.StatusForbidden, "Your email address is not verified"},
		{"unknown", http.StatusUnauthorized, "The sign-in was not completed"},
	} {
		t.Run(row.account, func(t *testing.T) {
			b := s.open(t, strings.TrimPrefix(provider.Issuer, "http://"))
			b.visit("/app/settings/tokens", http.StatusOK)
			b.follow("Sign in with single sign-on")
			b.do(chromedp.SendKeys(chromedp.CSS("input[name=account]"), row.account))
			if got := b.load(chromedp.Click(chromedp.CSS("button"))); got != row.status {
				t.Errorf("got status %d want %d", got, row.status)
			}
			b.shows(row.message)
			if signedIn := row.status == http.StatusOK; signedIn && b.path() != "/app/settings/tokens" {
				t.Errorf("got %s want the page that was asked for", b.path())
			}
			if row.status == http.StatusOK {
				b.visit("/app/account", http.StatusOK)
				b.shows("You sign in with single sign-on, and have no password here.")
				if b.has(`main input[type="password"]`) {
					t.Error("got a form for a password want none")
				}
			}
		})
	}
}
