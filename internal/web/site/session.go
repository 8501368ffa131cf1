package site

import (
	"cmp"
	"crypto/rand"
	"net/http"
	"net/url"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/clientaddr"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// sessionCookie stores the secret of a session.
const sessionCookie = "dmarcd_session"

// Client returns the client of the request, with its session.
func (c *Call) Client() service.Client {
	return service.Client{Address: clientaddr.Of(c.R), UserAgent: c.R.UserAgent(), Session: c.Cookie(sessionCookie), Browser: c.browserSecret()}
}

// identify authenticates the user of a call, or returns dmarcd.ErrUnauthorized.
func (c *Call) identify() error {
	client := c.Client()
	if client.Session == "" {
		return dmarcd.ErrUnauthorized
	}
	account, err := c.site.options.Service.Account(c.R.Context(), client)
	if err != nil {
		return err
	}
	c.Account, c.Viewer, c.Team, c.System = account, newViewer(account), account.InTeam(), account.System()
	if c.Tag = RequestedTag(c.R.URL.Query()); c.Tag != "" {
		c.Team = c.Team.Tagged(c.Tag)
	}
	return nil
}

// RequestedTag returns the tag in a query, "" if it is invalid.
func RequestedTag(query url.Values) string {
	tag, err := dmarcd.ParseTag(query.Get("tag"))
	if err != nil {
		return ""
	}
	return tag
}

// SetSession sets the session cookie, or clears it if secret is "". It is Lax, not
// Strict, so that links in mail work for signed-in users.
func (c *Call) SetSession(secret string) {
	c.SetCookie(sessionCookie, secret)
	if secret != "" {
		c.setCookie(browserCookie, c.browserSecret(), browserMaxAge)
	}
}

// browserCookie recognizes a browser at the next sign-in: users are notified of new ones. browserMaxAge is in seconds.
const (
	browserCookie = "dmarcd_browser"
	browserMaxAge = 90 * 24 * 60 * 60
)

// browserSecret returns the value of browserCookie, a new one for a new browser.
func (c *Call) browserSecret() string {
	if c.browser == "" {
		c.browser = cmp.Or(c.Cookie(browserCookie), rand.Text())
	}
	return c.browser
}

// SetCookie sets a session cookie that scripts cannot read, or clears it if value is "".
func (c *Call) SetCookie(name, value string) { c.setCookie(name, value, 0) }

func (c *Call) setCookie(name, value string, maxAge int) {
	if value == "" {
		maxAge = -1
	}
	secure, path := c.site.options.SecureCookies, Prefix+"/"
	if secure {
		path = "/" // the prefix requires it
	}
	http.SetCookie(c.W, &http.Cookie{ //nolint:gosec // Secure depends on the installation
		Name: c.cookieName(name), Value: value, Path: path, MaxAge: maxAge,
		HttpOnly: true, Secure: secure, SameSite: http.SameSiteLaxMode,
	})
}

// Cookie returns the value of a cookie that SetCookie set, or "".
func (c *Call) Cookie(name string) string {
	cookie, err := c.R.Cookie(c.cookieName(name))
	if err != nil {
		return ""
	}
	return cookie.Value
}

// cookieName returns the name of a cookie. With https, the prefix keeps other hosts of the same
// domain from setting it, for example to have a user work in the account of an attacker.
func (c *Call) cookieName(name string) string {
	if c.site.options.SecureCookies {
		return "__Host-" + name
	}
	return name
}

// passkeyCookie stores the state of a challenge for a passkey.
const passkeyCookie = "dmarcd_passkey"

// PasskeyField returns the field of a form that the answer to a challenge is sent in. The browser keeps the state.
func (c *Call) PasskeyField(name string, challenge service.Challenge) ui.Field {
	c.SetCookie(passkeyCookie, challenge.State)
	return ui.Field{Name: name, Type: "passkey", Value: challenge.Options}
}

// PasskeyAnswer returns the answer to the challenge of PasskeyField.
func (c *Call) PasskeyAnswer(answer string) service.PasskeyAnswer {
	return service.PasskeyAnswer{State: c.Cookie(passkeyCookie), Answer: answer}
}

// themeCookie stores the chosen theme. The server renders it into the page, so that the
// page never flashes in the other theme.
const themeCookie = "dmarcd_theme"

// themeMaxAge is the lifetime of the cookie, in seconds: a year.
const themeMaxAge = 365 * 24 * 60 * 60

// theme returns light, dark or "", which follows the system.
func (c *Call) theme() string {
	cookie, err := c.R.Cookie(themeCookie)
	if err != nil || cookie.Value != "light" && cookie.Value != "dark" {
		return ""
	}
	return cookie.Value
}

// SetTheme stores the theme of a form, and redirects back.
func SetTheme(c *Call, form url.Values) error {
	cookie := &http.Cookie{ //nolint:gosec // Secure depends on the installation
		Name: themeCookie, Value: form.Get("theme"), Path: Prefix + "/", MaxAge: themeMaxAge,
		HttpOnly: true, Secure: c.site.options.SecureCookies, SameSite: http.SameSiteLaxMode,
	}
	if cookie.Value != "light" && cookie.Value != "dark" {
		cookie.Value, cookie.MaxAge = "", -1
	}
	http.SetCookie(c.W, cookie)
	return c.Redirect(OwnPath(form.Get("back")))
}
