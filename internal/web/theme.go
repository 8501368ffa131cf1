package web

import "net/http"

// themeCookie stores the theme that the user chose. The server puts it
// into the page, so that it never shows the other look first.
const themeCookie = "dmarcd_theme"

// themeMaxAge is how long the choice is kept, in seconds: a year.
const themeMaxAge = 365 * 24 * 60 * 60

// theme returns light, dark or "", which leaves it to the system.
func (c *call) theme() string {
	cookie, err := c.r.Cookie(themeCookie)
	if err != nil || cookie.Value != "light" && cookie.Value != "dark" {
		return ""
	}
	return cookie.Value
}

// setTheme keeps the choice, and leads back to where it was made.
func (s *Web) setTheme(c *call) error {
	form, err := c.form()
	if err != nil {
		return err
	}
	cookie := &http.Cookie{ //nolint:gosec // Secure is what the installation has
		Name: themeCookie, Value: form.Get("theme"), Path: Prefix + "/", MaxAge: themeMaxAge,
		HttpOnly: true, Secure: s.options.SecureCookies, SameSite: http.SameSiteLaxMode,
	}
	if cookie.Value != "light" && cookie.Value != "dark" {
		cookie.Value, cookie.MaxAge = "", -1
	}
	http.SetCookie(c.w, cookie)
	return c.redirect(ownPath(form.Get("back")))
}
