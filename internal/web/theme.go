package web

import (
	"net/http"
	"net/url"
)

// themeCookie stores the chosen theme. The server renders it into the page, so that the
// page never flashes in the other theme.
const themeCookie = "dmarcd_theme"

// themeMaxAge is the lifetime of the cookie, in seconds: a year.
const themeMaxAge = 365 * 24 * 60 * 60

// theme returns light, dark or "", which follows the system.
func (c *call) theme() string {
	cookie, err := c.r.Cookie(themeCookie)
	if err != nil || cookie.Value != "light" && cookie.Value != "dark" {
		return ""
	}
	return cookie.Value
}

// setTheme stores the theme, and redirects back.
func (s *Web) setTheme(c *call, form url.Values) error {
	cookie := &http.Cookie{ //nolint:gosec // Secure depends on the installation
		Name: themeCookie, Value: form.Get("theme"), Path: Prefix + "/", MaxAge: themeMaxAge,
		HttpOnly: true, Secure: s.options.SecureCookies, SameSite: http.SameSiteLaxMode,
	}
	if cookie.Value != "light" && cookie.Value != "dark" {
		cookie.Value, cookie.MaxAge = "", -1
	}
	http.SetCookie(c.w, cookie)
	return c.redirect(ownPath(form.Get("back")))
}
