package auth

import (
	"net/http"
	"time"

	"github.com/dmarcd/dmarcd"
)

// Cookies makes and reads the cookies of the web page.
type Cookies struct {
	// Secure tells that the page is reached over HTTPS. The cookies then have
	// the prefix __Host-, with which a browser takes them from this host alone:
	// a neighbour under the same domain cannot plant one (RFC 6265bis §4.1.3.2).
	Secure bool
}

// SessionSecret returns the secret of the session that the browser holds, or "".
func (c Cookies) SessionSecret(r *http.Request) string { return c.read(r, "session") }

// Session returns the cookie that gives a browser its session.
func (c Cookies) Session(secret string) *http.Cookie {
	return c.make("session", secret, dmarcd.SessionLife)
}

// NoSession returns the cookie that takes the session from a browser.
func (c Cookies) NoSession() *http.Cookie { return c.make("session", "", -time.Second) }

// OIDC returns what OIDC.Begin gave the browser, or "".
func (c Cookies) OIDC(r *http.Request) string { return c.read(r, "oidc") }

// SetOIDC returns the cookie that keeps what OIDC.Begin made until the browser
// comes back from the provider.
func (c Cookies) SetOIDC(value string) *http.Cookie { return c.make("oidc", value, oidcLife) }

// NoOIDC returns the cookie that takes it from the browser again: one sign-in
// uses it up.
func (c Cookies) NoOIDC() *http.Cookie { return c.make("oidc", "", -time.Second) }

func (c Cookies) read(r *http.Request, name string) string {
	cookie, err := r.Cookie(c.name(name))
	if err != nil {
		return ""
	}
	return cookie.Value
}

// make makes a cookie that no script can read and that other sites' forms do not
// send. SameSite is Lax, not Strict: the way back from an OpenID provider is a
// link on another site.
func (c Cookies) make(name, value string, life time.Duration) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // Secure wherever the page is
		Name: c.name(name), Value: value, Path: "/", MaxAge: int(life.Seconds()),
		Secure: c.Secure, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
}

func (c Cookies) name(name string) string {
	if c.Secure {
		return "__Host-dmarcd-" + name
	}
	return "dmarcd-" + name
}
