package config

import (
	"net/url"
	"strings"
)

// mask replaces secrets in output.
const mask = "***"

// isPostgres reports whether text is a PostgreSQL URL, not a file.
func isPostgres(text string) bool {
	return strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://")
}

// maskPassword returns text without passwords in a URL or in PostgreSQL keywords. It errs
// on the side of hiding: text that it cannot parse is hidden completely.
func maskPassword(text string) string {
	scheme, rest, isURL := strings.Cut(text, "://")
	if !isURL {
		if strings.Contains(strings.ToLower(text), "password") && strings.Contains(text, "=") {
			return mask
		}
		return text
	}
	u, err := url.Parse(text)
	// An "@" outside the user information is a password that was not percent-encoded: then
	// the URL is misparsed.
	if at := strings.Count(rest, "@"); err != nil || at > 1 || at == 1 && u.User == nil {
		return scheme + "://" + mask
	}
	if _, has := u.User.Password(); has {
		user := url.User(u.User.Username()).String()
		_, address, _ := strings.Cut(rest, "@")
		text = scheme + "://" + user + ":" + mask + "@" + address
	}
	before, query, hasQuery := strings.Cut(text, "?")
	if !hasQuery {
		return text
	}
	parameters := strings.Split(query, "&")
	for i, p := range parameters {
		// PostgreSQL takes password and sslpassword here as well.
		name, _, _ := strings.Cut(p, "=")
		plain, err := url.QueryUnescape(name)
		if err != nil || strings.Contains(strings.ToLower(plain), "password") {
			parameters[i] = name + "=" + mask
		}
	}
	return before + "?" + strings.Join(parameters, "&")
}
